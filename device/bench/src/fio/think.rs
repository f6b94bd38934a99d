// SPDX-License-Identifier: MIT OR Apache-2.0
//! Think times with jitter, as a list of I/Os that fio replays. `job` adds it to the job file.
//!
//! fio's own `thinktime` is fixed, and a fixed pause locks in phase with the device. fio can replay
//! a list with times (`read_iolog`, version 3), but waits from the *issue* of one I/O to the issue
//! of the next. An `open` entry for an open file only makes fio count the wait from there. With one
//! before each I/O, the wait starts when the previous I/O completes, as a think time does. If a
//! pause is too long (timer, scheduling), fio shortens the next one, so the mean is exact.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::PathBuf;

use steadyio_core::random::{below, draw};

use crate::spec::workload::{Job, Op};

/// The range that a job reads and writes: the device from its offset on, or its file.
#[derive(Debug, Clone)]
pub struct Target {
    /// The device node or the file.
    pub path: PathBuf,
    pub offset_bytes: u64,
    /// The size of the range.
    pub size_bytes: u64,
}

/// A list of I/Os with the pauses between them.
#[derive(Debug)]
pub struct ThinkLog {
    path: PathBuf,
    text: String,
    node: String,
}

impl ThinkLog {
    /// Makes a list of `ios` I/Os of a job on `target`. Offsets, directions and pauses come from
    /// `seed`.
    pub fn new(path: PathBuf, job: &Job, target: &Target, ios: u64, seed: u64) -> ThinkLog {
        let mut drawn = 0;
        let mut next = |bound| {
            drawn += 1;
            below(draw(seed, drawn - 1), bound)
        };
        let block = job.bs_kib * 1_024;
        let blocks = (target.size_bytes / block).max(1);
        let mut text = String::from("fio version 3 iolog\n1 device add\n1 device open\n");
        // In us; fio takes a time of 0 for "none given".
        let mut time = 1;
        for index in 0..ios {
            let at = if job.op.random() { next(blocks) } else { index % blocks };
            let offset = target.offset_bytes + at * block;
            let direction = if is_read(job, || next(100)) { "read" } else { "write" };
            let pause = job.think_us - job.think_jitter_us + next(2 * job.think_jitter_us + 1);
            let _ = writeln!(text, "{time} device open");
            time += pause;
            let _ = writeln!(text, "{time} device {direction} {offset} {block}");
        }
        ThinkLog { path, text, node: target.path.display().to_string() }
    }

    /// fio options that make a job replay the list on its target.
    pub fn options(&self) -> String {
        format!("read_iolog={}\nreplay_redirect={}", self.path.display(), self.node)
    }

    /// Writes the list to the file that `options` names.
    pub fn write(&self) -> io::Result<()> {
        fs::write(&self.path, &self.text)
    }

    /// The list, for tests.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Whether the next I/O is a read; for mixed operations `percent` draws from 0 to 99.
pub fn is_read(job: &Job, percent: impl FnOnce() -> u64) -> bool {
    match job.op {
        Op::Read | Op::RandRead => true,
        Op::Write | Op::RandWrite => false,
        Op::ReadWrite | Op::RandRw => percent() < job.read_percent.unwrap_or(50),
    }
}
