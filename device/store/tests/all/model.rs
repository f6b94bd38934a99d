// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a store should hold, as plain as possible, and the operations of random tests.

use std::collections::BTreeMap;

use proptest::prelude::*;
use steadyio_core::random::draw;
use steadyio_store::AlignedBuffer;
use steadyio_store::error::StoreError;
use steadyio_store::storage::BLOCK_BYTES;
use steadyio_store::store::{ExtentOptions, Store, StoreOptions};

use crate::disk::Disk;

/// An extent of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    pub bytes: u64,
    pub contents: Vec<u8>,
}

pub type Model = BTreeMap<u64, Held>;

#[derive(Debug, Clone)]
pub enum Op {
    Create {
        id: u64,
        bytes: u64,
        twice: bool,
        checked: bool,
    },
    Write {
        id: u64,
        bytes: u64,
        seed: u64,
    },
    /// Given up after the first piece.
    WriteHalf {
        id: u64,
    },
    Delete {
        id: u64,
    },
    Flush,
    /// The program ends without a flush.
    Reopen,
    /// It is killed after so many writes and flushes more.
    Kill {
        after: u64,
    },
    PowerCut {
        seed: u64,
    },
}

/// A disk and a store for it.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub data_blocks: usize,
    pub extents_max: u32,
    pub log_blocks: u32,
    /// How many extents are there from the start: above 84, a snapshot has several blocks.
    pub extents: u64,
}

impl Shape {
    pub fn options(&self) -> StoreOptions {
        let (extents_max, log_blocks) = (self.extents_max, self.log_blocks);
        StoreOptions { align_bytes: Some(BLOCK_BYTES), extents_max, log_blocks }
    }

    /// A new store, with the extents that are to be there.
    pub fn make(&self) -> (Disk, Model) {
        let areas = 2 * (self.extents_max.div_ceil(84) + self.log_blocks) as usize;
        let disk = Disk::blocks(1 + areas + self.data_blocks + 1);
        let mut store = Store::create(disk.clone(), &self.options()).unwrap();
        let mut model = Model::new();
        for id in 1_000..1_000 + self.extents {
            let bytes = BLOCK_BYTES;
            store.create_extent(id, &ExtentOptions { bytes, twice: false, checked: true }).unwrap();
            model.insert(id, Held { bytes, contents: Vec::new() });
            if id % 50 == 0 {
                store.flush().unwrap();
            }
        }
        store.flush().unwrap();
        drop(store);
        (Disk::new(disk.contents()), model)
    }
}

pub fn shapes() -> impl Strategy<Value = Shape> {
    let small = |data_blocks, extents_max, log_blocks| Shape {
        data_blocks,
        extents_max,
        log_blocks,
        extents: 0,
    };
    prop_oneof![
        4 => Just(small(8, 3, 1)),
        4 => Just(small(14, 5, 3)),
        1 => Just(Shape { data_blocks: 120, extents_max: 170, log_blocks: 1, extents: 100 }),
    ]
}

pub fn operations() -> impl Strategy<Value = Vec<Op>> {
    let id = || 1..4u64;
    let bytes = || prop_oneof![1..5 * BLOCK_BYTES, (1..5u64).prop_map(|n| n * BLOCK_BYTES)];
    let create = (id(), bytes(), any::<bool>(), any::<bool>())
        .prop_map(|(id, bytes, twice, checked)| Op::Create { id, bytes, twice, checked });
    let write =
        (id(), bytes(), any::<u64>()).prop_map(|(id, bytes, seed)| Op::Write { id, bytes, seed });
    let op = prop_oneof![
        4 => create,
        8 => write,
        1 => id().prop_map(|id| Op::WriteHalf { id }),
        2 => id().prop_map(|id| Op::Delete { id }),
        8 => Just(Op::Flush),
        1 => Just(Op::Reopen),
        2 => (0..8u64).prop_map(|after| Op::Kill { after }),
        1 => any::<u64>().prop_map(|seed| Op::PowerCut { seed }),
    ];
    prop::collection::vec(op, 5..60)
}

/// Bytes that tell which write they are from, in an aligned buffer; at least one block long.
pub fn noise(bytes: u64, seed: u64) -> AlignedBuffer {
    let mut buffer = AlignedBuffer::new(bytes.max(1) as usize, false).unwrap();
    for (n, word) in (0..).zip(buffer.chunks_mut(8)) {
        word.copy_from_slice(&draw(seed, n).to_le_bytes()[..word.len()]);
    }
    buffer
}

/// What a store shows.
pub fn shown(store: &mut Store<Disk>) -> Result<Model, StoreError> {
    let mut model = Model::new();
    for (id, extent) in store.extents() {
        let room = extent.valid_bytes.next_multiple_of(BLOCK_BYTES).max(1) as usize;
        let mut buffer = AlignedBuffer::new(room, false)?;
        let before = store.commands().reads;
        let commands = store.load_commands(id)?;
        let length = store.load(id, &mut buffer)?;
        assert_eq!(store.commands().reads - before, commands, "the bound of a load");
        model.insert(id, Held { bytes: extent.bytes, contents: buffer[..length].to_vec() });
    }
    Ok(model)
}

/// What the model makes of an operation that the store accepted.
pub fn apply(model: &mut Model, op: &Op) {
    match *op {
        Op::Create { id, bytes, .. } => {
            assert!(model.insert(id, Held { bytes, contents: Vec::new() }).is_none(), "{op:?}");
        }
        Op::Write { id, bytes, seed } => {
            let held = model.get_mut(&id).unwrap();
            assert!(bytes <= held.bytes, "{op:?}");
            held.contents = noise(bytes, seed)[..bytes as usize].to_vec();
        }
        Op::Delete { id } => assert!(model.remove(&id).is_some(), "{op:?}"),
        _ => {}
    }
}
