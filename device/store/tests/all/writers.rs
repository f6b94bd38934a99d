// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two programs that change a store at a time, by paths that no lock covers.

use std::io;

use steadyio_store::error::StoreError;
use steadyio_store::storage::{Commands, Limits, Storage};
use steadyio_store::store::Store;

use crate::disk::Disk;
use crate::model::{noise, shown};
use crate::stored::stored;

fn contents(store: &mut Store<Disk>) -> Vec<u8> {
    shown(store).unwrap()[&1].contents.clone()
}

#[test]
fn a_change_after_another_program_s_is_refused() {
    // Enough for the other program to begin each area, and the same one again.
    for changes in 1..9 {
        for before in 1..5 {
            let disk = Disk::new(stored(before));
            let (mut late, mut other) =
                (Store::open(disk.clone()).unwrap(), Store::open(disk.clone()).unwrap());
            late.write(2, &noise(5_000, 5)[..5_000]).unwrap();
            // Both took the place that was free, and the other's contents are there now.
            for change in 0..changes {
                other.unload(1, &noise(6_000, change)[..6_000]).unwrap();
            }
            assert!(matches!(late.flush(), Err(StoreError::Moved)), "{before} {changes}");
            assert!(matches!(late.flush(), Err(StoreError::Failed)));
            let mut found = Store::open(disk).unwrap();
            assert_eq!(contents(&mut found), noise(6_000, changes - 1)[..6_000]);
        }
    }
}

#[test]
fn nothing_is_written_to_a_place_once_another_program_changed_the_store() {
    let disk = Disk::new(stored(1));
    let mut late = Store::open(disk.clone()).unwrap();
    late.unload(1, &noise(6_000, 1)[..6_000]).unwrap();
    Store::open(disk.clone()).unwrap().unload(1, &noise(6_000, 2)[..6_000]).unwrap();
    let image = disk.contents();
    assert!(matches!(late.begin_unload(1), Err(StoreError::Moved)));
    assert_eq!(disk.contents(), image);
}

#[test]
fn one_program_alone_is_never_refused() {
    let mut store = Store::open(Disk::new(stored(1))).unwrap();
    for change in 0..40 {
        store.unload(1, &noise(6_000, change)[..6_000]).unwrap();
    }
}

/// Another program overwrites each record before it is flushed.
#[derive(Debug)]
struct Overwritten {
    disk: Disk,
    record_at: Option<u64>,
}

impl Storage for Overwritten {
    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.disk.read_at(buffer, offset)
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.record_at = bytes.starts_with(b"STDYRECS").then_some(offset);
        self.disk.write_at(bytes, offset)
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Some(at) = self.record_at.take() {
            self.disk.write_at(&noise(4_096, at), at)?;
        }
        self.disk.flush()
    }

    fn limits(&self) -> Limits {
        self.disk.limits()
    }

    fn commands(&self) -> Commands {
        self.disk.commands()
    }
}

#[test]
fn a_record_that_another_program_overwrote_is_no_success() {
    let disk = Disk::new(stored(1));
    let mut store = Store::open(Overwritten { disk, record_at: None }).unwrap();
    let raced = store.unload(1, &noise(6_000, 1)[..6_000]);
    assert!(matches!(raced, Err(StoreError::Raced)), "{raced:?}");
}
