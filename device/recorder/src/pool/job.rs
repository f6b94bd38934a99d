// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes and syncs of a segment before or after its use, while the stage writes records.
//!
//! [`super::stage`] calls it. Each step begins when the one before it has succeeded. When one
//! fails, nothing else of the job is in flight, and the job can be repeated from the start.

use std::fs::File;

use super::direct_io::{Disk, DiskOp};
use crate::mcap::encoder::FileRange;

/// The longest job continues a segment: sync, copy, head, sync, end block, sync.
const STEPS_MAX: usize = 6;

/// A step of a job.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    /// Write this buffer. Nothing else may use it until the job ends.
    Write(usize, FileRange),
    /// Sync, which makes all steps before it durable.
    Sync,
}

/// A sequence of steps.
#[derive(Debug)]
pub struct Job {
    file: File,
    steps: [Option<Step>; STEPS_MAX],
    /// The index of the next step, or of the one in flight.
    at: usize,
    is_under_way: bool,
}

impl Job {
    /// Makes a job of these steps, in order.
    pub fn new(file: File, steps: impl IntoIterator<Item = Step>) -> Job {
        let mut all = [None; STEPS_MAX];
        for (at, step) in steps.into_iter().enumerate() {
            all[at] = Some(step);
        }
        Job { file, steps: all, at: 0, is_under_way: false }
    }

    fn next_step(&self) -> Option<Step> {
        self.steps.get(self.at).copied().flatten()
    }

    /// Begins the next step if none is in flight. Only one sync may be in flight, so a sync may
    /// have to wait for another call. Returns the number of bytes that it writes.
    pub fn go_on(&mut self, disk: &mut Disk) -> usize {
        let Some(step) = self.next_step() else { return 0 };
        if self.is_under_way || (matches!(step, Step::Sync) && disk.is_syncing()) {
            return 0;
        }
        self.is_under_way = true;
        match step {
            Step::Write(slot, place) => {
                disk.write(&self.file, slot, place);
                place.bytes
            }
            Step::Sync => {
                disk.sync(&self.file);
                0
            }
        }
    }

    /// Whether this completes the step in flight.
    pub fn awaits(&self, what: DiskOp) -> bool {
        self.is_under_way
            && match (self.next_step(), what) {
                (Some(Step::Write(slot, _)), DiskOp::Write(done)) => slot == done,
                (Some(Step::Sync), DiskOp::Sync) => true,
                _ => false,
            }
    }

    /// Records that the step in flight has succeeded.
    pub fn end_step(&mut self) {
        self.is_under_way = false;
        self.at += 1;
    }

    /// Restarts with the first step. Nothing of the job may be in flight.
    pub fn rewind(&mut self) {
        self.is_under_way = false;
        self.at = 0;
    }

    /// Whether all steps are done.
    pub fn is_over(&self) -> bool {
        self.next_step().is_none()
    }

    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the file.
    pub fn into_file(self) -> File {
        self.file
    }
}
