// SPDX-License-Identifier: MIT OR Apache-2.0
//! A small store that tests damage.

use steadyio_store::store::{ExtentOptions, Store};

use crate::model::{Shape, noise};

pub const BLOCK: usize = 4_096;
pub const SHAPE: Shape = Shape { data_blocks: 12, extents_max: 4, log_blocks: 3, extents: 0 };

/// A store with so many flushes behind it: each replaces extent 1, the first makes 1 and 2.
pub fn stored(flushes: u64) -> Vec<u8> {
    let (disk, _) = SHAPE.make();
    let mut store = Store::open(disk.clone()).unwrap();
    for id in [1, 2] {
        let options = ExtentOptions { bytes: 9_000, twice: false, checked: true };
        store.create_extent(id, &options).unwrap();
        store.write(id, &noise(9_000, id)[..9_000]).unwrap();
    }
    for flush in 0..flushes {
        store.unload(1, &noise(6_000, 100 + flush)[..6_000]).unwrap();
    }
    disk.contents()
}

pub fn flip(image: &mut [u8], at: usize) {
    image[at] ^= 0x10;
}
