// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the records of a device, and finds the valid state. It writes nothing. `store`, `check`
//! and `repair` call it.
//!
//! A power cut leaves nothing here that is a [`Problem`]. Problems are damage, and most of them
//! mean that the state found may be older than the durable one.

use std::collections::{BTreeMap, BTreeSet};

use steadyio_core::memory::AlignedBuffer;

use crate::error::StoreError;
use crate::format::BLOCK;
use crate::format::geometry::{ALIGN_BYTES_MAX, Geometry, copy_at};
use crate::format::records::{self, Extent, Record};
use crate::format::superblock::{self, NoSuperblock};
use crate::places::Places;
use crate::storage::{BLOCK_BYTES, Limits, Storage};

pub use crate::problem::Problem;

/// The odd factors of usual alignments are below this.
const FACTOR_MAX: u64 = 64;

/// The valid area.
#[derive(Debug, Clone, Default)]
pub struct Current {
    pub area: usize,
    pub epoch: u64,
    /// The number of its snapshot's blocks, which have all extents as of the beginning of the area.
    pub snapshot_blocks: u32,
    /// The number of its used blocks; the next change follows them.
    pub blocks: u32,
    pub extents: BTreeMap<u64, Extent>,
}

/// The result of an examination.
#[derive(Debug, Clone)]
pub struct Examined {
    pub geometry: Geometry,
    /// None if there is no complete snapshot.
    pub current: Option<Current>,
    /// The highest epoch of all valid blocks, in both areas.
    pub epoch_max: u64,
    pub problems: Vec<Problem>,
}

/// Reads both superblocks and both areas.
pub fn examine<S: Storage>(storage: &mut S) -> Result<Examined, StoreError> {
    let (geometry, problems) = find_superblock(storage)?;
    examine_areas(storage, geometry, problems)
}

/// Like [`examine`], with a superblock that the caller has found, and its problems. The repair
/// calls it.
pub(crate) fn examine_areas<S: Storage>(
    storage: &mut S,
    geometry: Geometry,
    mut problems: Vec<Problem>,
) -> Result<Examined, StoreError> {
    let areas = match read_both_areas(storage, &geometry)? {
        Some(areas) => areas,
        None => vec![
            read_area(storage, &geometry, 0, &mut problems)?,
            read_area(storage, &geometry, 1, &mut problems)?,
        ],
    };
    let epochs = areas.iter().flatten().flatten().map(|record| record.head.epoch);
    let epoch_max = epochs.max().unwrap_or(0);
    if epoch_max == u64::MAX {
        problems.push(Problem::LastEpoch);
    }
    let current = choose(&areas, &mut problems);
    if let Some(current) = &current {
        check_extents(&geometry, &current.extents, &mut problems);
    }
    Ok(Examined { geometry, current, epoch_max, problems })
}

/// The superblock, or its copy. `StoreError::NoStore`: there is none, and no record where one would be.
pub(crate) fn find_superblock<S: Storage>(
    storage: &mut S,
) -> Result<(Geometry, Vec<Problem>), StoreError> {
    let size_bytes = storage.limits().size_bytes;
    let Some(last) = copy_at(size_bytes) else { return Err(StoreError::NoStore) };
    let mut block = AlignedBuffer::new(BLOCK, false)?;
    let mut read = |at| superblock_at(storage, &mut block, at);
    match read(0) {
        // The device belongs to a program of another version, whatever is at its end.
        Err(NoSuperblock::Version(found)) => Err(StoreError::Version { found }),
        Ok(geometry) if geometry.store_bytes > size_bytes => {
            let store_bytes = geometry.store_bytes;
            Err(StoreError::Truncated { store_bytes, size_bytes })
        }
        Ok(geometry) => Ok((
            geometry,
            match read(geometry.copy_at()) {
                Ok(copy) if copy == geometry => Vec::new(),
                copy => vec![Problem::SuperblockCopy(copy.err().unwrap_or(NoSuperblock::Magic))],
            },
        )),
        Err(first) => match read(last) {
            Ok(copy) if copy.copy_at() == last => Ok((copy, vec![Problem::Superblock(first)])),
            Err(NoSuperblock::Magic) if first == NoSuperblock::Magic => {
                Err(if has_records(storage)? {
                    StoreError::OnlyRecords
                } else {
                    StoreError::NoStore
                })
            }
            copy => {
                let copy = copy.err().unwrap_or(NoSuperblock::Magic);
                Err(StoreError::Superblocks { first, copy })
            }
        },
    }
}

pub(crate) fn superblock_at<S: Storage>(
    storage: &mut S,
    block: &mut [u8],
    at: u64,
) -> Result<Geometry, NoSuperblock> {
    match storage.read_at(block, at) {
        Ok(()) => superblock::decode(block),
        Err(_) => Err(NoSuperblock::Unreadable),
    }
}

/// Whether there are records where a store of the device's or a usual alignment has them. It is
/// only called without a superblock.
fn has_records<S: Storage>(storage: &mut S) -> Result<bool, StoreError> {
    let Limits { size_bytes, erase_bytes, .. } = storage.limits();
    let mut block = AlignedBuffer::new(BLOCK, false)?;
    for at in
        usual_aligns(erase_bytes).take_while(|at| at.saturating_add(BLOCK_BYTES) <= size_bytes)
    {
        if storage.read_at(&mut block, at).is_ok() && records::decode(&block).is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Alignments, rising: the device's erase unit, and powers of two times a small factor, as erase
/// units of several planes have it. Reading all of the first gigabyte would take a card half a
/// minute.
fn usual_aligns(erase_bytes: u64) -> impl Iterator<Item = u64> {
    let powers = || (0..).map(|power| BLOCK_BYTES << power).take_while(|&at| at <= ALIGN_BYTES_MAX);
    let factors = (1..FACTOR_MAX).step_by(2);
    let aligns = factors.flat_map(|factor| powers().map(move |power| factor * power));
    let own = erase_bytes.checked_next_multiple_of(BLOCK_BYTES).unwrap_or(0);
    let all: BTreeSet<u64> = aligns.chain([own]).collect();
    all.into_iter().filter(|at| (BLOCK_BYTES..=ALIGN_BYTES_MAX).contains(at))
}

/// The valid blocks of an area that are in their place.
type Area = Vec<Option<Record>>;

/// Reads both areas with one read, if the gap between them is at most as long as an area. None
/// otherwise, or if the device cannot read all of it.
fn read_both_areas<S: Storage>(
    storage: &mut S,
    geometry: &Geometry,
) -> Result<Option<Vec<Area>>, StoreError> {
    let used = geometry.area_blocks() as usize * BLOCK;
    let stride = (geometry.area_at(1) - geometry.area_at(0)) as usize;
    if stride > 2 * used {
        return Ok(None);
    }
    let mut bytes = AlignedBuffer::new(stride + used, false)?;
    if storage.read_at(&mut bytes, geometry.area_at(0)).is_err() {
        return Ok(None);
    }
    let areas = [&bytes[..used], &bytes[stride..]];
    Ok(Some(areas.map(|area| decode_area(geometry, area)).into()))
}

fn decode_area(geometry: &Geometry, bytes: &[u8]) -> Area {
    let whole = |(index, block): (usize, &[u8])| {
        let is_here = |record: &Record| {
            record.head.store == geometry.id && record.head.index as usize == index
        };
        records::decode(block).filter(is_here)
    };
    bytes.chunks_exact(BLOCK).enumerate().map(whole).collect()
}

fn read_area<S: Storage>(
    storage: &mut S,
    geometry: &Geometry,
    area: usize,
    problems: &mut Vec<Problem>,
) -> Result<Area, StoreError> {
    let count = geometry.area_blocks();
    let mut bytes = AlignedBuffer::new(count as usize * BLOCK, false)?;
    let at = geometry.area_at(area);
    if storage.read_at(&mut bytes, at).is_err() {
        let mut unreadable = 0;
        for (block, at) in bytes.chunks_exact_mut(BLOCK).zip((at..).step_by(BLOCK)) {
            if storage.read_at(block, at).is_err() {
                block.fill(0);
                unreadable += 1;
            }
        }
        if unreadable > 0 {
            problems.push(Problem::Unreadable { area, blocks: unreadable });
        }
    }
    Ok(decode_area(geometry, &bytes))
}

/// The number of blocks in an area's snapshot, and its epoch; None if it is incomplete.
fn snapshot(area: &Area) -> Option<(usize, u64)> {
    let head = area.first()?.as_ref()?.head;
    let blocks = head.snapshot_blocks as usize;
    let belongs = |block: &Option<Record>| {
        block.as_ref().is_some_and(|record| {
            let found = record.head;
            found.is_snapshot
                && (found.epoch, found.snapshot_blocks) == (head.epoch, head.snapshot_blocks)
        })
    };
    let whole = blocks > 0 && blocks <= area.len() && area[..blocks].iter().all(belongs);
    whole.then_some((blocks, head.epoch))
}

fn choose(areas: &[Area], problems: &mut Vec<Problem>) -> Option<Current> {
    let found: Vec<Option<(usize, u64)>> = areas.iter().map(snapshot).collect();
    let epoch = |area: usize| found[area].map(|(_, epoch)| epoch);
    if epoch(0).is_none() && epoch(1).is_none() {
        problems.push(Problem::NoSnapshot);
        return None;
    }
    if epoch(0) == epoch(1) {
        problems.push(Problem::SameEpoch);
    }
    let chosen = usize::from(epoch(1) > epoch(0));
    let current = replay(&areas[chosen], chosen, found[chosen]?, problems);
    // Changes follow a snapshot only when it is durable.
    let is_newer = |record: &Record| !record.head.is_snapshot && record.head.epoch > current.epoch;
    if areas[1 - chosen].iter().flatten().any(is_newer) {
        problems.push(Problem::Newer { area: 1 - chosen });
    }
    Some(current)
}

fn replay(
    blocks: &Area,
    area: usize,
    (snapshot_blocks, epoch): (usize, u64),
    problems: &mut Vec<Problem>,
) -> Current {
    let mut extents = BTreeMap::new();
    let is_of_epoch =
        |block: &Option<Record>| block.as_ref().is_some_and(|record| record.head.epoch == epoch);
    let is_change = |block: &&Option<Record>| {
        is_of_epoch(block) && block.as_ref().is_some_and(|record| !record.head.is_snapshot)
    };
    let changes = blocks[snapshot_blocks..].iter().take_while(is_change).count();
    let used = snapshot_blocks + changes;
    for (id, extent) in blocks[..used].iter().flatten().flat_map(|record| &record.entries) {
        match extent {
            Some(extent) => extents.insert(*id, *extent),
            None => extents.remove(id),
        };
    }
    // Each change was durable before the next was written.
    if blocks[used..].iter().any(is_of_epoch) {
        problems.push(Problem::Hole { area, block: used as u32 });
    }
    let (snapshot_blocks, blocks) = (snapshot_blocks as u32, used as u32);
    Current { area, epoch, snapshot_blocks, blocks, extents }
}

fn check_extents(
    geometry: &Geometry,
    extents: &BTreeMap<u64, Extent>,
    problems: &mut Vec<Problem>,
) {
    let mut places = Places::new(geometry);
    for (&id, extent) in extents {
        if places.is_valid(extent) {
            places.take(extent);
        } else {
            problems.push(Problem::Extent { id });
        }
    }
    if places.overlap() {
        problems.push(Problem::Overlap);
    }
    if extents.len() > geometry.extents_max as usize {
        problems.push(Problem::TooMany { extents: extents.len() });
    }
}

const _: () = assert!(BLOCK as u64 == BLOCK_BYTES);
