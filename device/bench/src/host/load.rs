// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads that do synchronous, direct I/O on a host whose software takes time.
//!
//! Which I/Os are done depends on the seed and their number only: all threads take the next one
//! from the same counter, so one thread and sixteen read the same offsets.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use steadyio_core::device::Device;
use steadyio_core::histogram::Histogram;
use steadyio_core::interrupt::Interrupt;
use steadyio_core::latency::Latencies;
use steadyio_core::random::{below, draw};
use steadyio_recorder::memory::{AlignedBuffer, MemoryError};

use crate::fio::job::{job_name, seed_of};
use crate::fio::output::JobOutput;
use crate::fio::think::is_read;
use crate::host::semaphore::FairSemaphore;
use crate::spec::expand::PlannedPoint;
use crate::spec::host::Host;
use crate::spec::workload::{Data, Job};

/// Interval of checks whether the threads have ended.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Random numbers per I/O: offset and direction.
const DRAWS: u64 = 2;

/// Why a load ended early.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The device cannot be opened, or a thread cannot be set up.
    #[error("{what}")]
    Io { what: String, source: io::Error },
    /// No memory for a buffer.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// Ctrl-C or another signal.
    #[error("interrupted")]
    Interrupted,
}

/// What all points of a load share.
#[derive(Debug)]
pub struct HostLoad<'a> {
    pub device: &'a Device,
    /// Idle time before each point in ms.
    pub settle_ms: u64,
    /// Seed of the workload.
    pub seed: u64,
    /// Ends the run early.
    pub stop: &'a Interrupt,
}

/// What the threads of one point share.
struct Point<'a> {
    host: Host,
    job: &'a Job,
    ios: u64,
    seed: u64,
    file: File,
    blocks: u64,
    cores: FairSemaphore,
    preparing: FairSemaphore,
    next: AtomicU64,
    stop: &'a Interrupt,
}

/// What one thread did.
#[derive(Default)]
struct Done {
    latencies: Latencies,
    bytes: u64,
    errors: u64,
    errno: i32,
}

impl HostLoad<'_> {
    /// Runs the points one after the other; `tick` is called while waiting, with the time since the
    /// start. Results are by fio's job name, as a bench has them from fio.
    pub fn run(
        &self,
        points: &[PlannedPoint],
        tick: &mut dyn FnMut(Duration),
    ) -> Result<BTreeMap<String, JobOutput>, HostError> {
        let started = Instant::now();
        let mut outputs = BTreeMap::new();
        for point in points {
            // Both are there: the spec's check requires it, and a bench reports a job without
            // output.
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
    ) -> Result<Point<'p>, HostError> {
        let node = &self.device.node;
        let file = OpenOptions::new()
            .read(true)
            .write(job.op.writes())
            .custom_flags(OFlags::DIRECT.bits() as i32)
            .open(node)
            .map_err(|source| HostError::Io { what: node.display().to_string(), source })?;
        Ok(Point {
            host,
            job,
            ios: point.length.ios.unwrap_or_default(),
            seed: seed_of(self.seed, point.index, 0),
            file,
            blocks: self.device.size_bytes / (job.bs_kib * 1_024),
            cores: FairSemaphore::new(host.cores),
            preparing: FairSemaphore::new(host.pre_at_once),
            next: AtomicU64::new(0),
            stop: self.stop,
        })
    }
}

impl Point<'_> {
    fn run(&self, tick: &mut dyn FnMut()) -> Result<JobOutput, HostError> {
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
                .collect::<Result<Vec<(Done, Instant)>, HostError>>()
        })?;
        if self.stop.requested() {
            return Err(HostError::Interrupted);
        }
        let ended = done.iter().map(|(_, ended)| *ended).max().unwrap_or(started);
        let mut output = JobOutput {
            duration_ns: u64::try_from((ended - started).as_nanos()).unwrap_or(u64::MAX),
            ..JobOutput::default()
        };
        for (done, _) in done {
            output.bytes += done.bytes;
            output.errors += done.errors;
            output.fatal = output.fatal.max(done.errno);
            let latency: Histogram = done.latencies.histogram();
            output.latency.merge(&latency);
        }
        output.count = output.latency.count();
        Ok(output)
    }

    /// Does I/Os until all are taken; returns when the last one ended.
    fn thread(&self) -> Result<(Done, Instant), HostError> {
        // Without this the kernel may add 50 us to each sleep.
        rustix::thread::set_current_timer_slack(Some(NonZeroU64::MIN)).map_err(|error| {
            HostError::Io { what: "timer slack of a thread".into(), source: error.into() }
        })?;
        let mut buffer = AlignedBuffer::new((self.job.bs_kib * 1_024) as usize, false)?;
        if self.job.data == Data::Random {
            for (index, bytes) in buffer.chunks_exact_mut(8).enumerate() {
                bytes.copy_from_slice(&draw(self.seed, index as u64).to_le_bytes());
            }
        }
        let mut done = Done::default();
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            if index >= self.ios || self.stop.requested() {
                return Ok((done, Instant::now()));
            }
            self.one(index, &mut buffer, &mut done);
        }
    }

    /// One I/O, with the host's software time.
    fn one(&self, index: u64, buffer: &mut [u8], done: &mut Done) {
        let begun = Instant::now();
        {
            let _preparing = self.preparing.take();
            self.compute(self.host.pre());
        }
        let moved = self.transfer(index, buffer);
        self.compute(self.host.post());
        match moved {
            Ok(()) => {
                done.latencies.add(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
                done.bytes += buffer.len() as u64;
            }
            Err(error) => {
                done.errors += 1;
                done.errno = error.raw_os_error().unwrap_or(rustix::io::Errno::IO.raw_os_error());
            }
        }
    }

    fn compute(&self, time: Duration) {
        if !time.is_zero() && !self.stop.requested() {
            let _core = self.cores.take();
            thread::sleep(time);
        }
    }

    fn transfer(&self, index: u64, buffer: &mut [u8]) -> io::Result<()> {
        let drawn = |n| draw(self.seed, index * DRAWS + n);
        let block =
            if self.job.op.random() { below(drawn(0), self.blocks) } else { index % self.blocks };
        let offset = block * buffer.len() as u64;
        if is_read(self.job, || below(drawn(1), 100)) {
            self.file.read_exact_at(buffer, offset)
        } else {
            self.file.write_all_at(buffer, offset)
        }
    }
}
