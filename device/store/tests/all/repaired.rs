// SPDX-License-Identifier: MIT OR Apache-2.0
//! Damaged superblocks, written again: only when asked, only from a copy whose records are whole.

use steadyio_store::error::StoreError;
use steadyio_store::repair::{Plan, plan};
use steadyio_store::store::{Store, StoreOptions};

use crate::disk::Disk;
use crate::model::{noise, shown};
use crate::stored::{BLOCK, flip, stored};

fn planned(disk: &mut Disk) -> Result<Plan, StoreError> {
    plan(disk, &mut |_, _| true)
}

/// Repairs, and returns the contents of extent 1.
fn repaired(image: Vec<u8>) -> Vec<u8> {
    let mut disk = Disk::new(image.clone());
    let plan = planned(&mut disk).unwrap();
    assert!(plan.damaged.is_some(), "{plan}");
    assert_eq!(disk.contents(), image, "a plan writes nothing");
    plan.carry_out(&mut disk).unwrap();
    let (after, at) = (disk.contents(), plan.damaged.unwrap().0 as usize);
    assert!(image[..at] == after[..at] && image[at + BLOCK..] == after[at + BLOCK..]);
    let mut store = Store::open(disk).unwrap();
    assert_eq!(store.problems(), []);
    shown(&mut store).unwrap()[&1].contents.clone()
}

fn expected() -> Vec<u8> {
    noise(6_000, 100)[..6_000].to_vec()
}

#[test]
fn a_good_store_needs_nothing() {
    let mut disk = Disk::new(stored(1));
    assert_eq!(planned(&mut disk).unwrap().damaged, None);
}

#[test]
fn a_superblock_is_written_again_from_its_copy_and_the_other_way_round() {
    for damage in [0..1, 20..21, 0..BLOCK] {
        let image = stored(1);
        for at in [0, image.len() - BLOCK] {
            let mut image = image.clone();
            image[at..][damage.clone()].iter_mut().for_each(|byte| *byte ^= 0x10);
            assert_eq!(repaired(image), expected());
        }
    }
}

#[test]
fn records_are_recognized_without_a_superblock_at_any_usual_alignment() {
    for blocks in [1, 3, 6, 21, 63] {
        let align_bytes = Some((blocks * BLOCK) as u64);
        let options = StoreOptions { align_bytes, extents_max: 4, log_blocks: 1 };
        let disk = Disk::blocks(6 * blocks + 1);
        Store::create(disk.clone(), &options).unwrap();
        let mut image = disk.contents();
        image.resize(image.len() + BLOCK, 0);
        image[..BLOCK].fill(0);
        let opened = Store::open_to_read(Disk::new(image));
        assert!(matches!(opened, Err(StoreError::OnlyRecords)), "{blocks}: {opened:?}");
    }
}

#[test]
fn a_copy_is_found_on_a_larger_device() {
    let mut image = stored(1);
    image.resize(image.len() + 3_000 * BLOCK, 0x55);
    image[..BLOCK].fill(0);
    let said = Store::open_to_read(Disk::new(image.clone())).unwrap_err().to_string();
    assert!(said.starts_with("holds records of a store, but no superblock"), "{said}");
    assert!(said.contains("steady store repair"), "{said}");
    assert_eq!(repaired(image), expected());
}

#[test]
fn records_that_are_damaged_too_are_left_alone() {
    let mut image = stored(2);
    flip(&mut image, BLOCK + BLOCK + 60);
    flip(&mut image, 40);
    assert!(matches!(planned(&mut Disk::new(image)), Err(StoreError::Damaged(_))));
}

#[test]
fn without_a_copy_and_with_two_nothing_is_guessed() {
    let mut image = stored(1);
    image[..BLOCK].fill(0);
    let last = image.len() - BLOCK;
    image[last..].fill(0);
    assert!(matches!(planned(&mut Disk::new(image)), Err(StoreError::NoCopy)));
    assert!(matches!(planned(&mut Disk::blocks(0)), Err(StoreError::NoStore)));
    assert!(matches!(planned(&mut Disk::blocks(9)), Err(StoreError::NoCopy)));
    let mut image = stored(1);
    image[..8].fill(0);
    image.resize(image.len() + BLOCK, 0);
    let stop = plan(&mut Disk::new(image), &mut |_, _| false);
    assert!(matches!(stop, Err(StoreError::Interrupted)));
}
