// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads and reports everything in a store, in any state. It repairs nothing. `steady store check`
//! and `list` call it.

use serde::Serialize;

use crate::error::StoreError;
use crate::format::records::Extent;
use crate::places::{Free, Places};
use crate::storage::Storage;
use crate::store::Store;

/// The state of an extent's contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Contents {
    Good,
    /// They have no checksum, and could be read.
    Unchecked,
    /// Their checksum is wrong.
    Damaged,
    /// The device cannot read them, or their place is impossible.
    Unreadable,
}

/// An extent and its contents.
#[derive(Debug, Clone, Serialize)]
pub struct ReportedExtent {
    pub id: u64,
    #[serde(flatten)]
    pub extent: Extent,
    /// None if they were not read.
    pub contents: Option<Contents>,
}

/// A report on a store.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The id in hexadecimal digits.
    pub store: String,
    pub store_bytes: u64,
    pub align_bytes: u64,
    pub extents_max: u32,
    /// The number of flushes since the last snapshot, and the number after which the next is
    /// written.
    pub changes: u32,
    pub changes_max: u32,
    pub extents: Vec<ReportedExtent>,
    pub free: Free,
    /// Damage outside of contents.
    pub problems: Vec<String>,
}

impl Report {
    /// Whether nothing is damaged.
    pub fn is_good(&self) -> bool {
        let good = |found: &ReportedExtent| {
            !matches!(found.contents, Some(Contents::Damaged | Contents::Unreadable))
        };
        self.problems.is_empty() && self.extents.iter().all(good)
    }
}

/// A report without reading any contents.
pub fn describe<S: Storage>(store: &Store<S>) -> Report {
    let geometry = store.geometry();
    let (changes, changes_max) = store.changes();
    let unread = |(id, extent)| ReportedExtent { id, extent, contents: None };
    Report {
        store: geometry.id.iter().map(|byte| format!("{byte:02x}")).collect(),
        store_bytes: geometry.store_bytes,
        align_bytes: geometry.align_bytes,
        extents_max: geometry.extents_max,
        changes,
        changes_max,
        extents: store.extents().into_iter().map(unread).collect(),
        free: store.free(),
        problems: store.problems().iter().map(ToString::to_string).collect(),
    }
}

/// A report with all contents, which are read into a buffer of whole blocks. `progress` gets the
/// number of bytes read and of all bytes, and returns whether to continue.
pub fn check<S: Storage>(
    storage: S,
    buffer: &mut [u8],
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Report, StoreError> {
    let mut store = Store::open_damaged(storage)?;
    let mut report = describe(&store);
    let places = Places::new(store.geometry());
    let (mut whole, wrong): (Vec<_>, Vec<_>) =
        report.extents.iter_mut().partition(|found| places.is_valid(&found.extent));
    wrong.into_iter().for_each(|found| found.contents = Some(Contents::Unreadable));
    // Extents that overlap may have more together than there are numbers.
    let lengths = whole.iter().map(|found| found.extent.valid_bytes);
    let all = lengths.fold(0, u64::saturating_add);
    let mut done: u64 = 0;
    for found in &mut whole {
        let mut read = |bytes| {
            done = done.saturating_add(bytes);
            progress(done, all)
        };
        found.contents = Some(check_contents(&mut store, found.id, buffer, &mut read)?);
    }
    Ok(report)
}

fn check_contents<S: Storage>(
    store: &mut Store<S>,
    id: u64,
    buffer: &mut [u8],
    read: &mut dyn FnMut(u64) -> bool,
) -> Result<Contents, StoreError> {
    let checked = store.extent(id)?.crc.is_some();
    let mut loading = store.begin_load(id)?;
    loop {
        match loading.next(buffer) {
            Ok([]) if checked => return Ok(Contents::Good),
            Ok([]) => return Ok(Contents::Unchecked),
            Ok(piece) if read(piece.len() as u64) => {}
            Ok(_) => return Err(StoreError::Interrupted),
            Err(StoreError::Contents { .. }) => return Ok(Contents::Damaged),
            Err(StoreError::Io { .. }) => return Ok(Contents::Unreadable),
            Err(error) => return Err(error),
        }
    }
}
