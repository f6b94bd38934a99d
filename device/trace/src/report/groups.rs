// SPDX-License-Identifier: MIT OR Apache-2.0
//! Groups of I/Os and requests: per device, operation and size. `record` shows them, and `worst`
//! compares an I/O with its group.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::rows::{Item, Row};
use super::times::Times;
use super::words::size_text;
use super::{by_key, sorted};

/// If one operation has more sizes than this, sizes are grouped by powers of two.
const SIZES_MAX: usize = 8;
/// The number of inodes to list.
const INODES_MAX: usize = 5;

/// I/Os or requests of one device, operation and size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// The device's name, or major:minor.
    pub device: String,
    /// For requests, the reason: `io`, `writeback`, `readahead`, `journal` or `thread`.
    pub origin: Option<String>,
    /// `read`, `write`, the name of a call that syncs, `flush`, `discard` or `other`.
    pub op: String,
    pub size_bytes_min: u64,
    pub size_bytes_max: u64,
    /// The highest number that were queued or in flight at one moment.
    pub at_once_max: u64,
    #[serde(flatten)]
    pub times: Times,
    /// The inodes with most bytes, if known.
    pub inodes: Vec<Inode>,
}

/// The requests and bytes of one inode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inode {
    pub inode: u64,
    /// The path of its file, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    pub requests: u64,
    pub bytes: u64,
}

impl Group {
    fn of(items: &[&Item]) -> Option<Group> {
        let Row { device, origin, op, .. } = &items.first()?.row;
        let bytes = || items.iter().filter_map(|item| item.row.bytes);
        let during = items.iter().map(|item| item.during_ns());
        let at_once = counts(during.map(|(begin, end)| (begin, end.max(begin.saturating_add(1)))));
        let of_inodes = items
            .iter()
            .filter_map(|item| Some(((item.row.inode?, item.row.path.as_ref()), item.row.bytes?)));
        let inode = |((inode, path), bytes): ((u64, Option<&String>), Vec<u64>)| {
            let (path, requests) = (path.cloned(), bytes.len() as u64);
            Inode { inode, path, requests, bytes: bytes.into_iter().sum() }
        };
        let mut inodes = sorted(by_key(of_inodes).into_iter().map(inode), |inode| inode.bytes);
        inodes.truncate(INODES_MAX);
        Some(Group {
            device: device.clone()?,
            origin: origin.map(String::from),
            op: (*op).into(),
            size_bytes_min: bytes().min()?,
            size_bytes_max: bytes().max()?,
            at_once_max: at_once.iter().map(|(_, count)| count.unsigned_abs()).max()?,
            times: Times::of(items)?,
            inodes,
        })
    }

    pub fn has(&self, row: &Row) -> bool {
        let sizes = self.size_bytes_min..=self.size_bytes_max;
        row.device.as_ref() == Some(&self.device)
            && row.origin == self.origin.as_deref()
            && row.op == self.op
            && row.bytes.is_some_and(|bytes| sizes.contains(&bytes))
    }

    /// Device, operation and size. The title is unique among groups of one origin.
    pub fn title(&self) -> String {
        let Group { device, op, size_bytes_min: min, size_bytes_max: max, .. } = self;
        match (min, max) {
            (0, 0) => format!("{device} {op}"),
            (min, max) if min == max => format!("{device} {op} {}", size_text(*min)),
            (min, max) => format!("{device} {op} {} to {}", size_text(*min), size_text(*max)),
        }
    }
}

/// The groups, sorted by device, origin, operation and size.
pub fn groups(items: &[Item]) -> Vec<Group> {
    let dev = |item: &Item| item.own.first().map(|request| request.dev);
    let of = |item: &Item| (dev(item), item.row.origin, item.row.op);
    let alike = by_key(items.iter().map(|item| (of(item), item)));
    let of_sizes = alike.into_values().flat_map(|items| {
        let sizes: BTreeSet<Option<u64>> = items.iter().map(|item| item.row.bytes).collect();
        let size = |item: &Item| {
            let bytes = item.row.bytes.unwrap_or(0);
            match sizes.len() {
                0..=SIZES_MAX => bytes,
                _ => bytes.checked_ilog2().map_or(0, |log| 1 << log),
            }
        };
        by_key(items.into_iter().map(|item| (size(item), item))).into_values()
    });
    of_sizes.filter_map(|items| Group::of(&items)).collect()
}

/// The number of concurrent intervals at each moment at which it changes. An interval that ends
/// when another begins does not overlap it.
pub(crate) fn counts(intervals: impl Iterator<Item = (u64, u64)>) -> Vec<(u64, i64)> {
    let changes = by_key(intervals.flat_map(|(begin, end)| [(begin, 1), (end, -1)]));
    let mut count = 0;
    let change = |(time_ns, changes): (u64, Vec<i64>)| {
        let change: i64 = changes.into_iter().sum();
        count += change;
        (change != 0).then_some((time_ns, count))
    };
    changes.into_iter().filter_map(change).collect()
}
