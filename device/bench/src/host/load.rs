// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads that do synchronous, direct I/O on a host whose software takes time. `run` starts them.
//!
//! The I/Os depend only on the seed and their number. All threads take the next number from the
//! same counter, so one thread and sixteen read the same offsets.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use steadyio_core::device::Device;
use steadyio_core::interrupt::Interrupt;

use crate::fio::job::{job_name, seed_of};
use crate::fio::output::JobOutput;
use crate::fio::think::Target;
use crate::host::semaphore::FairSemaphore;
use crate::spec::expand::PlannedPoint;
use crate::spec::host::Host;
use crate::spec::workload::Job;
use crate::transfer::{Done, LoadError, Transfer, sleep_exactly};

/// The interval of checks whether the threads have ended.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The commands that a card without a command queue takes in addition to one for the data:
/// SET_BLOCK_COUNT, and SEND_STATUS after a write. Source: drivers/mmc/core/block.c of Linux 6.1.
const COMMANDS_OF_READ: u64 = 1;
const COMMANDS_OF_WRITE: u64 = 2;

/// The common settings of all points of a load.
#[derive(Debug)]
pub struct HostLoad<'a> {
    pub device: &'a Device,
    /// The idle time before each point in ms.
    pub settle_ms: u64,
    /// The seed of the workload.
    pub seed: u64,
    /// Ends the run early.
    pub stop: &'a Interrupt,
}

/// The shared state of one point's threads.
struct Point<'a> {
    host: Host,
    job: &'a Job,
    ios: u64,
    /// The additional commands of an I/O.
    commands: u64,
    transfer: Transfer<'a>,
    cores: FairSemaphore,
    preparing: FairSemaphore,
    next: AtomicU64,
    stop: &'a Interrupt,
}

impl HostLoad<'_> {
    /// Runs the points one after the other. While waiting it calls `tick` with the time since the
    /// start. Results are by fio's job name, like fio's own.
    pub fn run(
        &self,
        points: &[PlannedPoint],
        tick: &mut dyn FnMut(Duration),
    ) -> Result<BTreeMap<String, JobOutput>, LoadError> {
        let started = Instant::now();
        let mut outputs = BTreeMap::new();
        for point in points {
            // Both exist: the spec's check requires it, and a bench reports a job without output.
            let (Some(host), [job]) = (point.host, &point.jobs[..]) else { continue };
            thread::sleep(Duration::from_millis(self.settle_ms));
            let running = self.point(host, job, point)?;
            let output = running.run(&mut || tick(started.elapsed()))?;
            outputs.insert(job_name(point, job), output);
        }
        Ok(outputs)
    }

    fn point<'p>(
        &'p self,
        host: Host,
        job: &'p Job,
        point: &PlannedPoint,
    ) -> Result<Point<'p>, LoadError> {
        let target = Target {
            path: self.device.node.clone(),
            offset_bytes: 0,
            size_bytes: self.device.size_bytes,
        };
        Ok(Point {
            host,
            job,
            ios: point.length.ios.unwrap_or_default(),
            commands: commands(self.device, job),
            transfer: Transfer::open(job, seed_of(self.seed, point.index, 0, 0), &target)?,
            cores: FairSemaphore::new(host.cores),
            preparing: FairSemaphore::new(host.pre_at_once),
            next: AtomicU64::new(0),
            stop: self.stop,
        })
    }
}

/// The commands that each I/O takes besides that for its data; 0 unless the device is a card
/// without a command queue in use.
fn commands(device: &Device, job: &Job) -> u64 {
    match fs::read_to_string(device.queue.join("../device/cmdq_en")) {
        Ok(text) if text.trim() == "0" => {
            if job.op.writes() {
                COMMANDS_OF_WRITE
            } else {
                COMMANDS_OF_READ
            }
        }
        _ => 0,
    }
}

impl Point<'_> {
    fn run(&self, tick: &mut dyn FnMut()) -> Result<JobOutput, LoadError> {
        let started = Instant::now();
        let done = thread::scope(|scope| {
            let threads: Vec<_> =
                (0..self.job.threads).map(|_| scope.spawn(|| self.thread())).collect();
            while !threads.iter().all(|thread| thread.is_finished()) {
                thread::sleep(LOOK_EVERY);
                tick();
            }
            let ends: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
            ends.into_iter()
                .map(|end| end.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect::<Result<Vec<(Done, Instant)>, LoadError>>()
        })?;
        if self.stop.requested() {
            return Err(LoadError::Interrupted);
        }
        let ended = done.iter().map(|(_, ended)| *ended).max().unwrap_or(started);
        let mut output = JobOutput {
            duration_ns: u64::try_from((ended - started).as_nanos()).unwrap_or(u64::MAX),
            ..JobOutput::default()
        };
        for (done, _) in done {
            done.add_to(&mut output);
        }
        Ok(output)
    }

    /// Does I/Os until all are taken. Returns the end of the last one.
    fn thread(&self) -> Result<(Done, Instant), LoadError> {
        sleep_exactly()?;
        let mut buffer = self.transfer.buffer()?;
        let mut done = Done::default();
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            if index >= self.ios || self.stop.requested() {
                return Ok((done, Instant::now()));
            }
            self.one(index, &mut buffer, &mut done);
        }
    }

    /// Does one I/O, with the host's software time.
    fn one(&self, index: u64, buffer: &mut [u8], done: &mut Done) {
        let begun = Instant::now();
        {
            let _preparing = self.preparing.take();
            self.compute(self.host.pre(self.commands));
        }
        let moved = self.transfer.run(index, buffer);
        self.compute(self.host.post());
        let ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        done.add(moved, buffer.len() as u64, ns);
    }

    fn compute(&self, time: Duration) {
        if !time.is_zero() && !self.stop.requested() {
            let _core = self.cores.take();
            thread::sleep(time);
        }
    }
}
