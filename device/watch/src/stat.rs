// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses the block layer's counters of a disk, under any scheduler: `/sys/block/DISK/stat`.
//! `sample` calls it.

/// The counters of all requests of one kind since the disk appeared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Requests {
    pub count: u64,
    /// The sum of times in whole ms, the kernel's resolution.
    pub sum_ms: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stat {
    pub reads: Requests,
    pub writes: Requests,
    pub in_flight: u64,
    /// The time in which at least one request was in the disk.
    pub busy_ms: u64,
}

impl Stat {
    /// Parses the fields. Documentation/block/stat.rst of the kernel describes them.
    pub fn parse(text: &str) -> Option<Stat> {
        let fields: Option<Vec<u64>> =
            text.split_whitespace().map(|field| field.parse().ok()).collect();
        let fields = fields.filter(|fields| fields.len() >= 11)?;
        Some(Stat {
            reads: Requests { count: fields[0], sum_ms: fields[3] },
            writes: Requests { count: fields[4], sum_ms: fields[7] },
            in_flight: fields[8],
            busy_ms: fields[9],
        })
    }
}
