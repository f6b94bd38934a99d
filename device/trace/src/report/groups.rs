// SPDX-License-Identifier: MIT OR Apache-2.0
//! Groups of I/Os and requests: per device, operation and size.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::steps;
use super::times::{Sample, Times};
use super::words::{inode, io_op, op_word, origin_word};
use crate::event::Dev;
use crate::io::Trace;

/// With more sizes than this of one operation, sizes of the same power of two are one group.
const SIZES_MAX: usize = 8;
/// As many inodes are named.
const INODES_MAX: usize = 5;

/// I/Os or requests of one device, operation and size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// The device's name, or major:minor.
    pub device: String,
    /// Of requests: on whose behalf (`io`, `writeback`, `readahead`, `journal`, `thread`).
    pub origin: Option<String>,
    /// `read`, `write`, the name of a call that syncs, `flush`, `discard` or `other`.
    pub op: String,
    /// Smallest of the group, in bytes.
    pub size_bytes_min: u64,
    /// Largest of the group, in bytes.
    pub size_bytes_max: u64,
    /// The most that were queued or in flight at one moment.
    pub at_once_max: u64,
    /// Where their time went.
    #[serde(flatten)]
    pub times: Times,
    /// Those that moved most bytes, if inodes are known.
    pub inodes: Vec<Inode>,
}

impl Group {
    /// Device, operation and size, unique among groups of one origin.
    pub fn title(&self) -> String {
        let Group { device, op, size_bytes_min: min, size_bytes_max: max, .. } = self;
        match (min, max) {
            (0, 0) => format!("{device} {op}"),
            (min, max) if min == max => format!("{device} {op} {}", size_text(*min)),
            (min, max) => format!("{device} {op} {} to {}", size_text(*min), size_text(*max)),
        }
    }
}

/// A size with the largest binary unit that leaves it whole.
pub fn size_text(bytes: u64) -> String {
    match bytes {
        0 => "0".into(),
        bytes if bytes % (1 << 20) == 0 => format!("{} MiB", bytes >> 20),
        bytes if bytes % (1 << 10) == 0 => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} B"),
    }
}

/// What was moved for one inode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inode {
    pub inode: u64,
    pub requests: u64,
    pub bytes: u64,
}

/// What one group has in common, before sizes are put together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    dev: Dev,
    origin: Option<&'static str>,
    op: &'static str,
}

/// One I/O or request on its way into a group.
struct Member {
    key: Key,
    bytes: u64,
    during_ns: (u64, u64),
    inode: Option<u64>,
    sample: Sample,
}

/// Groups, and to which of them each member belongs, in the order in which members were given.
pub struct Grouped {
    /// In the order of device, origin, operation and size.
    pub groups: Vec<Group>,
    /// Indices into `groups`.
    pub of: Vec<usize>,
}

/// Groups of I/Os, given as indices into [`Trace::ios`].
pub fn ios(trace: &Trace, indices: &[usize], names: &BTreeMap<Dev, String>) -> Grouped {
    let member = |index: &usize| {
        let io = &trace.ios[*index];
        let dev = steps::device(io, trace).unwrap_or(Dev { major: 0, minor: 0 });
        Member {
            key: Key { dev, origin: None, op: io_op(io, trace) },
            bytes: io.bytes,
            during_ns: (io.entered_ns, io.exited_ns),
            inode: None,
            sample: Sample::of_io(io, trace),
        }
    };
    grouped(indices.iter().map(member).collect(), names)
}

/// Groups of requests, given as indices into [`Trace::requests`].
pub fn requests(trace: &Trace, indices: &[usize], names: &BTreeMap<Dev, String>) -> Grouped {
    let member = |index: &usize| {
        let request = &trace.requests[*index];
        let origin = Some(origin_word(request.origin));
        Member {
            key: Key { dev: request.dev, origin, op: op_word(request.op.kind) },
            bytes: request.bytes,
            during_ns: request.life(),
            inode: inode(request.origin),
            sample: Sample::of_request(request),
        }
    };
    grouped(indices.iter().map(member).collect(), names)
}

fn grouped(members: Vec<Member>, names: &BTreeMap<Dev, String>) -> Grouped {
    let mut sizes: BTreeMap<Key, BTreeSet<u64>> = BTreeMap::new();
    for member in &members {
        sizes.entry(member.key).or_default().insert(member.bytes);
    }
    let many = |key: &Key| sizes.get(key).is_some_and(|sizes| sizes.len() > SIZES_MAX);
    let size = |member: &Member| {
        if many(&member.key) {
            member.bytes.checked_ilog2().map_or(0, |log| 1 << log)
        } else {
            member.bytes
        }
    };
    let mut places: BTreeMap<(Key, u64), usize> =
        members.iter().map(|member| ((member.key, size(member)), 0)).collect();
    for (number, place) in places.values_mut().enumerate() {
        *place = number;
    }
    let of: Vec<usize> = members.iter().map(|member| places[&(member.key, size(member))]).collect();
    let mut parts: Vec<Vec<Member>> = places.iter().map(|_| Vec::new()).collect();
    for (member, place) in members.into_iter().zip(&of) {
        parts[*place].push(member);
    }
    let name = |dev: Dev| names.get(&dev).cloned().unwrap_or_else(|| dev.to_string());
    Grouped { groups: parts.into_iter().filter_map(|part| group(part, name)).collect(), of }
}

fn group(members: Vec<Member>, name: impl Fn(Dev) -> String) -> Option<Group> {
    let key = members.first()?.key;
    let bytes = || members.iter().map(|member| member.bytes);
    Some(Group {
        device: name(key.dev),
        origin: key.origin.map(String::from),
        op: key.op.into(),
        size_bytes_min: bytes().min()?,
        size_bytes_max: bytes().max()?,
        at_once_max: at_once_max(members.iter().map(|member| member.during_ns)),
        inodes: inodes(&members),
        times: Times::of(members.into_iter().map(|member| (member.bytes, member.sample)))?,
    })
}

/// The most intervals that contain one moment; one that ends when another begins does not meet it.
fn at_once_max(intervals: impl Iterator<Item = (u64, u64)>) -> u64 {
    let mut changes: Vec<(u64, i64)> =
        intervals.flat_map(|(begin, end)| [(begin, 1), (end.max(begin + 1), -1)]).collect();
    changes.sort_unstable();
    let now = changes.iter().scan(0, |now, (_, change)| {
        *now += change;
        Some(*now)
    });
    now.max().unwrap_or(0).unsigned_abs()
}

fn inodes(members: &[Member]) -> Vec<Inode> {
    let mut of: BTreeMap<u64, Inode> = BTreeMap::new();
    for member in members {
        if let Some(inode) = member.inode {
            let sum = of.entry(inode).or_insert(Inode { inode, requests: 0, bytes: 0 });
            sum.requests += 1;
            sum.bytes += member.bytes;
        }
    }
    let mut sums: Vec<Inode> = of.into_values().collect();
    sums.sort_by_key(|sum| std::cmp::Reverse(sum.bytes));
    sums.truncate(INODES_MAX);
    sums
}
