// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the block layer counts for each disk, under every scheduler: `/sys/block/DISK/stat`.

/// Of all requests of one kind since the disk came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Requests {
    pub count: u64,
    /// In whole ms: the kernel does not tell more.
    pub sum_ms: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stat {
    pub reads: Requests,
    pub writes: Requests,
    pub in_flight: u64,
    /// For how long at least one request was with the disk.
    pub busy_ms: u64,
}

impl Stat {
    /// Documentation/block/stat.rst of the kernel has the fields.
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
