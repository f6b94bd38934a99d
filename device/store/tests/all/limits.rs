// SPDX-License-Identifier: MIT OR Apache-2.0
//! Full stores, wrong arguments, and how many commands everything takes.

use steadyio_store::AlignedBuffer;
use steadyio_store::error::StoreError;
use steadyio_store::places::Free;
use steadyio_store::storage::{BLOCK_BYTES, Commands};
use steadyio_store::store::{ExtentOptions, Store, StoreOptions};

use crate::disk::Disk;
use crate::model::{Shape, noise};

fn once(bytes: u64) -> ExtentOptions {
    ExtentOptions { bytes, twice: false, checked: true }
}

fn twice(bytes: u64) -> ExtentOptions {
    ExtentOptions { twice: true, ..once(bytes) }
}

fn store(data_blocks: usize) -> Store<Disk> {
    let shape = Shape { data_blocks, extents_max: 100, log_blocks: 8, extents: 0 };
    Store::open(shape.make().0).unwrap()
}

/// Blocks that are free, and how many of them in one piece.
fn free(store: &Store<Disk>) -> (u64, u64) {
    let Free { total_bytes, largest_bytes } = store.free();
    (total_bytes / BLOCK_BYTES, largest_bytes / BLOCK_BYTES)
}

#[test]
fn a_full_store_says_what_is_free_and_changes_nothing() {
    let mut store = store(10);
    for id in 0..5 {
        store.create_extent(id, &once(2 * BLOCK_BYTES)).unwrap();
        store.write(id, &noise(5_000, id)[..5_000]).unwrap();
    }
    store.flush().unwrap();
    let said = store.create_extent(9, &once(1)).unwrap_err().to_string();
    assert!(said.starts_with("no room for 4096 bytes in one piece: 0 are free"), "{said}");
    let refused = store.unload(3, &noise(10, 99)[..10]);
    assert!(matches!(refused, Err(StoreError::Full { needed_bytes: 8_192, .. })));
    let mut buffer = AlignedBuffer::new(8_192, false).unwrap();
    assert_eq!(store.load(3, &mut buffer).unwrap(), 5_000);
    assert_eq!(buffer[..5_000], noise(5_000, 3)[..5_000]);
    // In pieces that are too small.
    store.delete(0).unwrap();
    store.delete(2).unwrap();
    store.flush().unwrap();
    assert_eq!(free(&store), (4, 2));
    let said = store.create_extent(9, &once(3 * BLOCK_BYTES)).unwrap_err().to_string();
    assert!(said.contains("16384 are free, the largest piece has 8192"), "{said}");
}

#[test]
fn an_extent_with_two_places_takes_new_contents_in_a_full_store() {
    let mut store = store(10);
    store.create_extent(1, &twice(3 * BLOCK_BYTES)).unwrap();
    store.create_extent(2, &once(4 * BLOCK_BYTES)).unwrap();
    assert_eq!(free(&store), (0, 0));
    for seed in 0..20 {
        store.unload(1, &noise(9_000, seed)[..9_000]).unwrap();
    }
    let mut buffer = AlignedBuffer::new(3 * BLOCK_BYTES as usize, false).unwrap();
    assert_eq!(store.load(1, &mut buffer).unwrap(), 9_000);
    assert_eq!(buffer[..9_000], noise(9_000, 19)[..9_000]);
}

#[test]
fn what_is_deleted_is_free_when_that_is_durable() {
    let mut store = store(4);
    store.create_extent(1, &once(4 * BLOCK_BYTES)).unwrap();
    store.unload(1, &noise(5_000, 1)[..5_000]).unwrap();
    store.delete(1).unwrap();
    assert!(matches!(store.create_extent(2, &once(1)), Err(StoreError::Full { .. })));
    store.flush().unwrap();
    store.create_extent(2, &once(4 * BLOCK_BYTES)).unwrap();
}

#[test]
fn one_flush_makes_at_most_84_changes_durable() {
    let mut store = store(90);
    for id in 0..84 {
        store.create_extent(id, &once(1)).unwrap();
    }
    let said = store.create_extent(84, &once(1)).unwrap_err().to_string();
    assert!(said.starts_with("84 changes wait for a flush"), "{said}");
    // No further one.
    store.write(83, &noise(1, 1)[..1]).unwrap();
    store.flush().unwrap();
    assert_eq!(store.commands().flushes, 3);
    store.create_extent(84, &once(1)).unwrap();
}

#[test]
fn so_many_extents_as_were_asked_for() {
    let shape = Shape { data_blocks: 10, extents_max: 2, log_blocks: 1, extents: 0 };
    let mut store = Store::open(shape.make().0).unwrap();
    store.create_extent(1, &once(1)).unwrap();
    store.create_extent(u64::MAX, &once(1)).unwrap();
    assert!(matches!(store.create_extent(3, &once(1)), Err(StoreError::TooMany(2))));
    assert!(matches!(store.create_extent(1, &once(1)), Err(StoreError::Exists(1))));
    assert!(matches!(store.create_extent(4, &once(0)), Err(StoreError::Empty)));
    assert!(matches!(store.delete(4), Err(StoreError::Missing(4))));
    store.delete(1).unwrap();
    store.create_extent(3, &once(1)).unwrap();
}

#[test]
fn each_extent_is_the_next_one_of_another() {
    let mut store = store(30);
    for id in [3, 5, 7, u64::MAX] {
        store.create_extent(id, &once(1)).unwrap();
    }
    store.flush().unwrap();
    store.delete(3).unwrap();
    store.delete(7).unwrap();
    for id in [0, 6] {
        store.create_extent(id, &once(1)).unwrap();
    }
    store.write(5, &noise(1, 1)[..1]).unwrap();
    let after = |id: u64| store.next_extent(id).map(|(id, _)| id);
    assert_eq!([0, 1, 5, 6, 7].map(after), [0, 5, 5, 6, u64::MAX].map(Some));
    assert_eq!(store.next_extent(5).unwrap().1, store.extent(5).unwrap());
    store.delete(u64::MAX).unwrap();
    assert_eq!(store.next_extent(7), None);
}

#[test]
fn extents_lie_on_units_of_the_alignment() {
    let align_bytes = 3 * BLOCK_BYTES;
    let options = StoreOptions { align_bytes: Some(align_bytes), extents_max: 5, log_blocks: 1 };
    let mut store = Store::create(Disk::blocks(50), &options).unwrap();
    for id in 0..4 {
        store.create_extent(id, &once(1 + id * BLOCK_BYTES)).unwrap();
        assert_eq!(store.extent(id).unwrap().start % align_bytes, 0);
    }
    let (geometry, limits) = (*store.geometry(), 0..2);
    assert!(limits.into_iter().all(|area| geometry.area_at(area) % align_bytes == 0));
    assert_eq!(store.free().total_bytes % align_bytes, 0);
}

#[test]
fn a_store_needs_room_and_sensible_options() {
    let make = |blocks, options: StoreOptions| {
        Store::create(Disk::blocks(blocks), &options).unwrap_err().to_string()
    };
    let default = StoreOptions::default();
    let said = make(100, default);
    assert!(said.contains("409600 bytes are too few") && said.contains("1048576"), "{said}");
    for (options, says) in [
        (
            StoreOptions { align_bytes: Some(0), ..default },
            "alignment 0: must be a multiple of 4096",
        ),
        (StoreOptions { align_bytes: Some(6_000), ..default }, "alignment 6000"),
        (StoreOptions { align_bytes: Some(1 << 31), ..default }, "alignment 2147483648"),
        (StoreOptions { extents_max: 0, ..default }, "extents 0: must be 1 to 65536"),
        (StoreOptions { log_blocks: 5_000, ..default }, "snapshots 5000: must be 1 to 4096"),
    ] {
        let said = make(100, options);
        assert!(said.contains(says), "{says} is not in: {said}");
    }
    let said = make(0, StoreOptions { align_bytes: Some(4_096), ..default });
    assert!(said.contains("0 bytes are too few"), "{said}");
}

#[test]
fn buffers_that_cannot_be_transferred_are_refused() {
    let mut store = store(10);
    store.create_extent(1, &once(9_000)).unwrap();
    let contents = noise(9_001, 1);
    let said = store.write(1, &contents).unwrap_err().to_string();
    assert_eq!(said, "extent 1: 9001 bytes are too many: it was made for 9000");
    let said = store.write(1, &contents[1..]).unwrap_err().to_string();
    assert!(said.starts_with("address of the contents = "), "{said}");
    store.write(1, &contents[..9_000]).unwrap();
    let mut buffer = AlignedBuffer::new(16_384, false).unwrap();
    let said = store.load(1, &mut buffer[..9_000]).unwrap_err().to_string();
    assert_eq!(said, "extent 1: a buffer of 9000 bytes is too small: 12288 are read");
    let said = store.load(1, &mut buffer[8..]).unwrap_err().to_string();
    assert!(said.starts_with("address of the buffer = "), "{said}");
    let mut unloading = store.begin_unload(1).unwrap();
    unloading.append(&contents[..100]).unwrap();
    let said = unloading.append(&contents[..100]).unwrap_err().to_string();
    assert!(said.starts_with("length of the pieces before the last = 100"), "{said}");
}

#[test]
fn pieces_and_one_buffer_are_the_same() {
    let mut store = store(40);
    let contents = noise(50_000, 1);
    for id in [1, 2] {
        store.create_extent(id, &once(60_000)).unwrap();
    }
    store.write(1, &contents).unwrap();
    let mut unloading = store.begin_unload(2).unwrap();
    contents.chunks(8_192).for_each(|piece| unloading.append(piece).unwrap());
    unloading.finish().unwrap();
    store.flush().unwrap();
    assert_eq!(store.extent(1).unwrap().crc, store.extent(2).unwrap().crc);
    let mut buffer = AlignedBuffer::new(8_192, false).unwrap();
    let mut loading = store.begin_load(2).unwrap();
    let mut read = Vec::new();
    loop {
        match loading.next(&mut buffer).unwrap() {
            [] => break,
            piece => read.extend_from_slice(piece),
        }
    }
    assert_eq!(read, contents[..]);
}

#[test]
fn a_load_is_as_many_commands_as_its_length_says_and_no_other() {
    let mut store = store(200);
    let mut buffer = AlignedBuffer::new(200 << 10, false).unwrap();
    // The disk's commands have 16 KiB.
    for (id, (bytes, commands)) in (1..).zip([
        (0, 0),
        (1, 1),
        (4_096, 1),
        (16_384, 1),
        (16_385, 2),
        (100_000, 7),
        (200 << 10, 13),
    ]) {
        store.create_extent(id, &once(200 << 10)).unwrap();
        store.unload(id, &noise(bytes, id)[..bytes as usize]).unwrap();
        let before = store.commands();
        assert_eq!(store.load_commands(id).unwrap(), commands);
        store.load(id, &mut buffer).unwrap();
        let reads = Commands { reads: commands, writes: 0, flushes: 0 };
        assert_eq!(store.commands().since(before), reads, "{bytes} bytes");
        store.delete(id).unwrap();
    }
}

#[test]
fn an_unload_is_its_data_one_record_two_flushes_and_three_checks() {
    let mut store = store(100);
    store.create_extent(1, &twice(65_536)).unwrap();
    store.unload(1, &noise(65_536, 1)).unwrap();
    let mut most = 0;
    for seed in 0..20 {
        let before = store.commands();
        store.unload(1, &noise(65_536, seed)).unwrap();
        let taken = store.commands().since(before);
        assert_eq!((taken.reads, taken.flushes), (3, 2));
        most = most.max(taken.writes);
        // Four for the data, one for the record, one more for a snapshot.
        assert!(taken.writes == 5 || taken.writes == 6, "{taken:?}");
    }
    assert_eq!(most, 6);
}
