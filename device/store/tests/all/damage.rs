// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices with damage, with another version's store, or with other contents: the store reports
//! them, never accepts them, and never repairs them.

use std::io;

use proptest::prelude::*;
use steadyio_store::AlignedBuffer;
use steadyio_store::check::{Contents, Report, check};
use steadyio_store::error::StoreError;
use steadyio_store::examine::Problem;
use steadyio_store::format::geometry::Geometry;
use steadyio_store::format::records::{self, Extent, Head};
use steadyio_store::format::superblock::{self, NoSuperblock};
use steadyio_store::storage::{Commands, Limits, Storage};
use steadyio_store::store::{ExtentOptions, Store};

use crate::disk::Disk;
use crate::model::{noise, shown};
use crate::stored::{BLOCK, flip, stored};

/// Of an area of `SHAPE`, and where both begin.
const AREA_BLOCKS: usize = 4;
const AREAS: [usize; 2] = [BLOCK, BLOCK * (1 + AREA_BLOCKS)];

fn check_all(image: Vec<u8>) -> Result<Report, StoreError> {
    let mut buffer = AlignedBuffer::new(2 * BLOCK, false).unwrap();
    check(Disk::new(image), &mut buffer, &mut |_, _| true)
}

fn problems(image: Vec<u8>) -> Vec<Problem> {
    match Store::open(Disk::new(image)) {
        Ok(store) => store.problems().to_vec(),
        Err(StoreError::Damaged(problems)) => problems,
        Err(error) => panic!("{error}"),
    }
}

fn refused(image: Vec<u8>) -> String {
    Store::open(Disk::new(image)).unwrap_err().to_string()
}

/// As if a program had written the block so.
fn seal(block: &mut [u8]) {
    block[12..16].fill(0);
    let crc = crc32fast::hash(block);
    block[12..16].copy_from_slice(&crc.to_le_bytes());
}

#[test]
fn other_versions_are_named() {
    for version in [0u32, 2, 77] {
        let mut image = stored(1);
        image[8..12].copy_from_slice(&version.to_le_bytes());
        seal(&mut image[..BLOCK]);
        let said = refused(image.clone());
        assert!(said.starts_with(&format!("holds a store of format {version}, and")), "{said}");
        assert!(said.contains("knows format 1"), "{said}");
        assert!(matches!(check_all(image), Err(StoreError::Version { found }) if found == version));
    }
}

#[test]
fn a_damaged_version_is_damage() {
    let mut image = stored(1);
    image[8] = 3;
    assert_eq!(problems(image), [Problem::Superblock(NoSuperblock::Checksum)]);
}

#[test]
fn what_is_no_store_is_told() {
    assert!(refused(vec![0; 100 * BLOCK]).contains("holds no store"));
    assert!(refused(vec![0x5a; 100 * BLOCK]).contains("holds no store"));
    assert!(refused(Vec::new()).contains("holds no store"));
}

#[test]
fn a_damaged_superblock_has_a_copy_to_read_with_and_not_to_change() {
    let mut image = stored(1);
    flip(&mut image, 40);
    let why = vec![Problem::Superblock(NoSuperblock::Checksum)];
    assert_eq!(problems(image.clone()), why);
    let mut store = Store::open_to_read(Disk::new(image.clone())).unwrap();
    assert_eq!(store.problems(), why);
    assert_eq!(shown(&mut store).unwrap()[&1].contents, noise(6_000, 100)[..6_000]);
    assert!(matches!(store.delete(1), Err(StoreError::ReadOnly)));
    assert!(!check_all(image).unwrap().is_good());
}

#[test]
fn what_another_format_overwrote_is_not_changed() {
    let mut image = stored(1);
    image[..BLOCK].fill(0xee);
    assert_eq!(problems(image), [Problem::Superblock(NoSuperblock::Magic)]);
}

#[test]
fn a_damaged_copy_is_told_and_does_no_harm() {
    let mut image = stored(1);
    let last = image.len() - BLOCK;
    flip(&mut image, last + 20);
    assert_eq!(problems(image.clone()), [Problem::SuperblockCopy(NoSuperblock::Checksum)]);
    Store::open(Disk::new(image.clone())).unwrap().delete(1).unwrap();
    let report = check_all(image.clone()).unwrap();
    assert_eq!((report.problems.len(), report.is_good()), (1, false));
    flip(&mut image, 20);
    let said = refused(image);
    assert!(said.contains("superblock: a damaged superblock"), "{said}");
    assert!(said.contains("end of the device: a damaged superblock"), "{said}");
}

#[test]
fn a_part_of_a_store_is_told_from_a_whole_one() {
    let mut image = stored(1);
    image.truncate(image.len() - BLOCK);
    let said = refused(image.clone());
    assert!(said.contains(&format!("but only {} are there", image.len())), "{said}");
    // On something larger it is whole.
    let mut image = stored(1);
    image.resize(image.len() + 7 * BLOCK, 0);
    assert_eq!(problems(image), []);
}

#[test]
fn a_hole_in_the_records_is_told() {
    let mut image = stored(2);
    flip(&mut image, AREAS[0] + BLOCK + 60);
    assert_eq!(problems(image.clone()), [Problem::Hole { area: 0, block: 1 }]);
    let report = check_all(image).unwrap();
    assert!(report.extents.is_empty() && !report.is_good());
}

#[test]
fn a_damaged_snapshot_with_changes_behind_it_is_told() {
    // The fourth flush begins the other area.
    let mut image = stored(4);
    flip(&mut image, AREAS[1] + 100);
    assert_eq!(problems(image.clone()), [Problem::Newer { area: 1 }]);
    flip(&mut image, AREAS[0] + 100);
    assert_eq!(problems(image.clone()), [Problem::NoSnapshot]);
    let report = check_all(image).unwrap();
    assert_eq!((report.extents.len(), report.problems.len()), (0, 1));
}

#[test]
fn damage_to_the_last_record_leaves_the_state_before_it() {
    // What a power cut may leave, too: nothing tells them apart.
    let mut image = stored(2);
    flip(&mut image, AREAS[0] + 2 * BLOCK + 60);
    let mut store = Store::open(Disk::new(image)).unwrap();
    assert_eq!(shown(&mut store).unwrap()[&1].contents, noise(6_000, 100)[..6_000]);
}

#[test]
fn damaged_contents_are_told_and_the_others_are_read() {
    let mut image = stored(1);
    let mut store = Store::open(Disk::new(image.clone())).unwrap();
    let start = store.extent(2).unwrap().start as usize;
    flip(&mut image, start + 8_999);
    let report = check_all(image.clone()).unwrap();
    let found: Vec<_> = report.extents.iter().map(|found| (found.id, found.contents)).collect();
    assert_eq!(found, [(1, Some(Contents::Good)), (2, Some(Contents::Damaged))]);
    let mut buffer = AlignedBuffer::new(3 * BLOCK, false).unwrap();
    store = Store::open(Disk::new(image)).unwrap();
    assert_eq!(store.load(1, &mut buffer).unwrap(), 6_000);
    let said = store.load(2, &mut buffer).unwrap_err().to_string();
    assert!(said.starts_with("extent 2: contents are damaged"), "{said}");
}

#[test]
fn extents_that_no_program_makes_are_told() {
    let image = stored(1);
    let record = AREAS[0] + BLOCK;
    let with = |at: usize, value: u64| {
        let mut image = image.clone();
        image[record + 56 + at..][..8].copy_from_slice(&value.to_le_bytes());
        seal(&mut image[record..record + BLOCK]);
        (problems(image.clone()), check_all(image).unwrap().is_good())
    };
    let outside = (vec![Problem::Extent { id: 1 }], false);
    let (start, spare, bytes, valid) = (8, 16, 24, 32);
    for wrong in [0, 1, BLOCK as u64, 1 << 62, u64::MAX] {
        assert_eq!(with(start, wrong), outside, "start {wrong}");
    }
    for wrong in [1, u64::MAX] {
        assert_eq!(with(spare, wrong), outside, "spare {wrong}");
    }
    for wrong in [0, 1 << 40, u64::MAX] {
        assert_eq!(with(bytes, wrong), outside, "bytes {wrong}");
    }
    assert_eq!(with(valid, u64::MAX), outside);
    let mut store = Store::open(Disk::new(image.clone())).unwrap();
    let second = store.extent(2).unwrap().start;
    assert_eq!(with(start, second).0, [Problem::Overlap]);
    assert!(shown(&mut store).is_ok());
}

/// The same store, as if so many snapshots had been written.
fn with_epoch(mut image: Vec<u8>, epoch: u64) -> Vec<u8> {
    for block in image.chunks_exact_mut(BLOCK).filter(|block| block.starts_with(b"STDYRECS")) {
        block[32..40].copy_from_slice(&epoch.to_le_bytes());
        seal(block);
    }
    image
}

#[test]
fn after_the_last_epoch_a_store_is_read_only() {
    let disk = Disk::new(with_epoch(stored(1), u64::MAX - 1));
    let mut store = Store::open(disk.clone()).unwrap();
    let put = |seed| noise(6_000, seed)[..6_000].to_vec();
    let mut last = 0;
    // The first snapshot has the last epoch.
    while store.unload(1, &noise(6_000, last)[..6_000]).is_ok() {
        last += 1;
        assert!(last < 20, "an epoch was used twice");
    }
    let why = [Problem::LastEpoch];
    assert_eq!(problems(disk.contents()), why);
    let mut store = Store::open_to_read(Disk::new(disk.contents())).unwrap();
    assert_eq!(store.problems(), why);
    assert_eq!(shown(&mut store).unwrap()[&1].contents, put(last - 1));
}

/// A device of 2^60 bytes that holds zeros behind an image.
#[derive(Debug)]
struct Huge(Vec<u8>);

impl Storage for Huge {
    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        buffer.fill(0);
        let held = usize::try_from(offset).ok().and_then(|at| self.0.get(at..)).unwrap_or(&[]);
        let length = held.len().min(buffer.len());
        buffer[..length].copy_from_slice(&held[..length]);
        Ok(())
    }

    fn write_at(&mut self, _: &[u8], _: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn limits(&self) -> Limits {
        Limits { size_bytes: 1 << 60, block_bytes: 512, command_bytes: 1 << 20, erase_bytes: 0 }
    }

    fn commands(&self) -> Commands {
        Commands::default()
    }
}

#[test]
fn overlapping_extents_with_more_bytes_than_a_number_can_say_are_told() {
    let store = [7; 16];
    let geometry = Geometry {
        id: store,
        store_bytes: 1 << 60,
        align_bytes: BLOCK as u64,
        extents_max: 84,
        log_blocks: 1,
    };
    let bytes = (1 << 60) - (1 << 20);
    let start = geometry.data_start();
    let extent = Extent { start, spare: None, bytes, valid_bytes: bytes, crc: None };
    let entries: Vec<_> = (0..84).map(|id| (id, Some(extent))).collect();
    let mut image = vec![0; 2 * BLOCK];
    superblock::encode(&geometry, &mut image);
    let head = Head { is_snapshot: true, store, epoch: 1, index: 0, snapshot_blocks: 1 };
    records::encode(&head, &entries, &mut image[BLOCK..]);
    let opened = Store::open(Huge(image.clone()));
    assert!(matches!(opened, Err(StoreError::Damaged(_))), "{opened:?}");
    let mut buffer = AlignedBuffer::new(BLOCK, false).unwrap();
    let mut all = 0;
    let mut first = |_: u64, bytes: u64| {
        all = bytes;
        false
    };
    let checked = check(Huge(image), &mut buffer, &mut first);
    assert!(matches!(checked, Err(StoreError::Interrupted)), "{checked:?}");
    assert_eq!(all, u64::MAX);
}

/// Damage as it may be: to anything, or as if a program had written it so.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let places = prop_oneof![
        4 => 0..(1 + 2 * AREA_BLOCKS) * BLOCK,
        // Where the fields are.
        4 => (0..=2 * AREA_BLOCKS, 0..160usize).prop_map(|(block, at)| block * BLOCK + at),
        1 => any::<prop::sample::Index>().prop_map(|at| at.index(22 * BLOCK)),
    ];
    let byte = prop_oneof![Just(0u8), Just(1), Just(0xff), any::<u8>()];
    let damage = prop::collection::vec((places, byte), 1..6);
    (0..6u64, damage, any::<bool>()).prop_map(|(flushes, damage, sealed)| {
        let mut image = stored(flushes);
        for (at, byte) in damage {
            let at = at.min(image.len() - 1);
            image[at] = byte;
            if sealed && at / BLOCK <= 2 * AREA_BLOCKS {
                let block = at / BLOCK * BLOCK;
                seal(&mut image[block..block + BLOCK]);
            }
        }
        image
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_makes_it_panic(image in damaged()) {
        // A store of any geometry that the bytes say, of up to 64 MiB of records.
        if let Ok(mut store) = Store::open(Disk::new(image.clone())) {
            let ids: Vec<u64> = store.extents().keys().copied().collect();
            let mut buffer = AlignedBuffer::new(4 * BLOCK, false).unwrap();
            for id in ids {
                let _ = store.load(id, &mut buffer);
                let _ = store.write(id, &noise(5_000, 7)[..5_000]);
            }
            let options = ExtentOptions { bytes: 4_096, twice: true, checked: true };
            let _ = store.create_extent(9, &options);
            let _ = store.flush();
        }
        let _ = check_all(image);
    }

    #[test]
    fn noise_is_no_store(bytes in prop::collection::vec(any::<u8>(), 0..3 * BLOCK)) {
        prop_assert!(Store::open(Disk::new(bytes)).is_err());
    }
}
