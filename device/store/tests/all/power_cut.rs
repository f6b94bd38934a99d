// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random operations, killed programs, and a power cut at every write and flush: a store holds what
//! it held before or after, never anything else.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use steadyio_store::error::StoreError;
use steadyio_store::examine::Problem;
use steadyio_store::store::{ExtentOptions, Store, StoreOptions};

use crate::disk::{Disk, Skip};
use crate::model::{Held, Model, Op, Shape, apply, noise, operations, shapes, shown};

/// Ways in which unflushed writes may arrive, for each moment of a cut.
const FATES: u64 = 8;

/// A state that became durable, if power stayed on long enough.
#[derive(Debug, Clone)]
struct Committed {
    /// Before this moment nothing of it was written.
    begun: usize,
    /// From this moment on it is durable; None as long as nobody flushed.
    durable: Option<usize>,
    model: Model,
}

/// A store, its model, and its durable states with their moments.
struct Run {
    skip: Skip,
    disk: Disk,
    store: Store<Disk>,
    shown: Model,
    history: Vec<Committed>,
    cuts: u64,
}

impl Run {
    fn new(shape: &Shape, skip: Skip) -> Run {
        let (disk, model) = shape.make();
        let disk = disk.skipping(skip);
        let store = Store::open(disk.reopened()).unwrap();
        let history = vec![Committed { begun: 0, durable: Some(0), model: model.clone() }];
        Run { skip, disk, store, shown: model, history, cuts: 0 }
    }

    fn durable(&self) -> &Model {
        &self.history.last().unwrap().model
    }

    fn run(&mut self, ops: &[Op]) -> Result<(), String> {
        for op in ops {
            self.step(op)?;
        }
        self.cut_everywhere()
    }

    fn step(&mut self, op: &Op) -> Result<(), String> {
        let begun = self.disk.moment();
        let result = match *op {
            Op::Reopen => return self.reopen(),
            Op::PowerCut { seed } => return self.power_cut(seed),
            Op::Kill { after } => {
                self.disk.kill_after(after);
                return Ok(());
            }
            Op::Create { id, bytes, twice, checked } => {
                self.store.create_extent(id, &ExtentOptions { bytes, twice, checked })
            }
            Op::Write { id, bytes, seed } => {
                self.store.write(id, &noise(bytes, seed)[..bytes as usize])
            }
            Op::WriteHalf { id } => self.write_half(id),
            Op::Delete { id } => self.store.delete(id),
            Op::Flush => self.store.flush(),
        };
        match result {
            Ok(()) => apply(&mut self.shown, op),
            Err(StoreError::Io { .. }) => return self.killed(op, begun),
            Err(error) => return self.refused(op, &error),
        }
        if matches!(op, Op::Flush) && self.shown != *self.durable() {
            let (durable, model) = (Some(self.disk.moment()), self.shown.clone());
            self.history.push(Committed { begun, durable, model });
        }
        let found = shown(&mut self.store).map_err(|error| format!("after {op:?}: {error}"))?;
        if found == self.shown { Ok(()) } else { Err(format!("{op:?} is not shown")) }
    }

    /// Given up after a piece: as if it had never begun, and nothing is staged for the extent.
    fn write_half(&mut self, id: u64) -> Result<(), StoreError> {
        let bytes = self.store.extent(id)?.bytes.min(4_096);
        self.store.begin_unload(id)?.append(&noise(bytes, 1)[..bytes as usize])?;
        let durable =
            self.durable().get(&id).filter(|durable| durable.bytes == self.shown[&id].bytes);
        let contents = match durable {
            Some(held) if self.store.extent(id)?.valid_bytes > 0 => held.contents.clone(),
            _ => Vec::new(),
        };
        let bytes = self.shown[&id].bytes;
        self.shown.insert(id, Held { bytes, contents });
        Ok(())
    }

    fn refused(&self, op: &Op, error: &StoreError) -> Result<(), String> {
        let there = |id: &u64| self.shown.contains_key(id);
        let rightly = match (op, error) {
            (Op::Create { id, .. }, StoreError::Exists(_)) => there(id),
            (Op::Create { .. }, StoreError::TooMany(max)) => self.shown.len() >= *max as usize,
            (Op::Create { bytes, .. }, StoreError::Full { free, .. }) => {
                // The second place of two may be what has no room.
                free.largest_bytes < *bytes
                    || free.total_bytes < 2 * bytes.next_multiple_of(4_096)
                    || matches!(op, Op::Create { twice: true, .. })
            }
            (Op::Write { bytes, id, .. }, StoreError::TooLong { .. }) => {
                *bytes > self.shown[id].bytes
            }
            (Op::Write { id, .. } | Op::WriteHalf { id }, StoreError::Full { free, .. }) => {
                free.largest_bytes < self.shown[id].bytes
            }
            (
                Op::Write { id, .. } | Op::WriteHalf { id } | Op::Delete { id },
                StoreError::Missing(_),
            ) => !there(id),
            _ => false,
        };
        if rightly { Ok(()) } else { Err(format!("{op:?}: {error}")) }
    }

    /// The program died in an operation; the next one finds what the disk's cache has.
    fn killed(&mut self, op: &Op, begun: usize) -> Result<(), String> {
        if matches!(op, Op::Flush) {
            let model = self.shown.clone();
            self.history.push(Committed { begun, durable: None, model });
        }
        self.reopen()
    }

    fn reopen(&mut self) -> Result<(), String> {
        let reopened = self.disk.moment();
        self.store = Store::open(self.disk.reopened()).map_err(|error| error.to_string())?;
        self.shown = shown(&mut self.store).map_err(|error| error.to_string())?;
        // A flush that was killed before its record was written never was.
        if self.history.last().unwrap().durable.is_none() && self.shown != *self.durable() {
            self.history.pop();
        }
        if self.shown != *self.durable() {
            return Err("a new program finds something else".into());
        }
        let last = self.history.last_mut().unwrap();
        if last.durable.is_none() {
            // The next flush is that of the new program.
            last.durable = Some(usize::MAX - reopened);
        }
        Ok(())
    }

    /// When a state of the history is durable: for what a killed program left, with the first flush
    /// of the next one.
    fn durable_at(&self, committed: &Committed) -> usize {
        match committed.durable {
            Some(moment) if moment > usize::MAX / 2 => {
                self.disk.flushed_after(usize::MAX - moment).unwrap_or(usize::MAX)
            }
            moment => moment.unwrap_or(usize::MAX),
        }
    }

    /// The states that a power cut may leave: the last durable one, and those begun since.
    fn allowed(&self, moment: usize) -> impl Iterator<Item = &Model> {
        let durable = self.history.iter().rposition(|one| self.durable_at(one) <= moment);
        let later = self.history[durable.unwrap_or(0)..].iter();
        later
            .enumerate()
            .filter(move |(n, one)| *n == 0 || one.begun < moment)
            .map(|(_, one)| &one.model)
    }

    fn open_cut(&self, moment: usize, seed: u64) -> Result<(Disk, Store<Disk>, Model), String> {
        let at = |error: StoreError| format!("cut at {moment}, fate {seed}: {error}");
        let disk = Disk::new(self.disk.cut(moment, seed)).skipping(self.skip);
        let mut store = Store::open(disk.reopened()).map_err(at)?;
        let found = shown(&mut store).map_err(at)?;
        if self.allowed(moment).all(|model| *model != found) {
            return Err(format!(
                "cut at {moment}, fate {seed}: neither before nor after: {found:?}"
            ));
        }
        Ok((disk, store, found))
    }

    /// Power is cut now, and the run goes on with the remaining contents.
    fn power_cut(&mut self, seed: u64) -> Result<(), String> {
        self.cut_everywhere()?;
        let (disk, store, found) = self.open_cut(self.disk.moment(), seed)?;
        let model = found.clone();
        self.history = vec![Committed { begun: 0, durable: Some(0), model }];
        (self.disk, self.store, self.shown) = (disk, store, found);
        Ok(())
    }

    fn cut_everywhere(&mut self) -> Result<(), String> {
        for moment in 0..=self.disk.moment() {
            for fate in 0..FATES {
                self.open_cut(moment, fate)?;
                self.cuts += 1;
            }
        }
        Ok(())
    }
}

/// `make soak` sets more than `make test` can have.
fn sequences() -> u32 {
    let given = std::env::var("STEADY_STORE_SEQUENCES").ok();
    given.and_then(|given| given.parse().ok()).unwrap_or(60)
}

#[test]
fn a_power_cut_anywhere_leaves_the_state_before_or_after() {
    let config = Config { cases: sequences(), failure_persistence: None, ..Config::default() };
    let cuts = Cell::new(0);
    TestRunner::new(config)
        .run(&(shapes(), operations()), |(shape, ops)| {
            let mut run = Run::new(&shape, Skip::Nothing);
            let outcome = run.run(&ops);
            cuts.set(cuts.get() + run.cuts);
            outcome.map_err(TestCaseError::fail)
        })
        .unwrap();
    println!("{} power cuts", cuts.get());
    assert!(cuts.get() > 300);
}

/// The proof that the test above can fail: one kind of flush does nothing.
fn is_noticed_without(skip: Skip) {
    let config =
        Config { cases: 500, max_shrink_iters: 0, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let found = runner.run(&(shapes(), operations()), |(shape, ops)| {
        Run::new(&shape, skip).run(&ops).map_err(TestCaseError::fail)
    });
    let text = found.expect_err("a flush is missing, and nobody notices").to_string();
    println!("{}", text.lines().next().unwrap_or_default());
}

#[test]
fn a_missing_flush_before_the_record_is_noticed() {
    is_noticed_without(Skip::BeforeRecord);
}

#[test]
fn a_missing_flush_after_the_record_is_noticed() {
    is_noticed_without(Skip::AfterRecord);
}

#[test]
fn a_missing_flush_after_another_program_was_killed_is_noticed() {
    is_noticed_without(Skip::First);
}

#[test]
fn a_power_cut_while_a_store_is_made_leaves_none_or_an_empty_one() {
    let shape = Shape { data_blocks: 40, extents_max: 5, log_blocks: 3, extents: 0 };
    let options: StoreOptions = shape.options();
    let (disk, _) = shape.make();
    let mut old = Store::open(disk.clone()).unwrap();
    old.create_extent(1, &ExtentOptions { bytes: 5_000, twice: true, checked: true }).unwrap();
    old.unload(1, &noise(5_000, 1)).unwrap();
    let before = Disk::new(disk.contents());
    drop(Store::create(before.clone(), &options).unwrap());
    let (mut kept, mut made) = (0, 0);
    for moment in 0..=before.moment() {
        for fate in 0..40 {
            match Store::open(Disk::new(before.cut(moment, fate))) {
                Ok(mut store) => {
                    let found = shown(&mut store).unwrap();
                    let is_old =
                        found.get(&1).is_some_and(|held| held.contents == *noise(5_000, 1));
                    assert!(is_old || found.is_empty(), "{moment} {fate}: {found:?}");
                    *if is_old { &mut kept } else { &mut made } += 1;
                }
                Err(StoreError::NoStore | StoreError::OnlyRecords) => {}
                // Only its copy is there: the earlier store can be read.
                Err(StoreError::Damaged(found)) => {
                    assert!(found.iter().all(Problem::allows_reading), "{found:?}");
                }
                Err(error) => panic!("{moment} {fate}: {error}"),
            }
        }
    }
    assert!(kept > 0 && made > 0);
}
