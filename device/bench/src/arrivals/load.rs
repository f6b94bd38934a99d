// SPDX-License-Identifier: MIT OR Apache-2.0
//! The threads of jobs with arrivals. A thread sleeps until the next arrival is due, and then does
//! its I/Os. `run` starts them.
//!
//! The latency is that of storage. It starts with the I/O, so a late wake-up of the thread does not
//! count, not even one that the workload asks for. If the thread misses an arrival because storage
//! is not done with the previous I/O, the latency starts when the arrival was due, because storage
//! caused this wait.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use steadyio_core::declared::{Owner, Task};
use steadyio_core::interrupt::Interrupt;
use steadyio_core::memory::AlignedBuffer;
use steadyio_core::scheduling::{
    IO_CLASS_BEST_EFFORT, IO_CLASS_IDLE, IO_CLASS_REAL_TIME, set_io_priority,
};

use crate::arrivals::busy;
use crate::arrivals::running::{Running, under_fifo};
use crate::arrivals::schedule::Schedule;
use crate::fio::job::{job_name, seed_of};
use crate::fio::output::JobOutput;
use crate::fio::think::Target;
use crate::spec::busy::Busy;
use crate::spec::expand::PlannedPoint;
use crate::spec::workload::{Ioprio, Job, Pattern};
use crate::transfer::{Done, LoadError, Transfer, sleep_exactly};

/// The interval of progress, and of checks whether to end early.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The threads of one point, ready to run.
#[derive(Debug)]
pub struct ArrivalsLoad<'a> {
    jobs: Vec<JobLoad<'a>>,
    busy: &'a [Busy],
    seconds: Option<Duration>,
    stop: &'a Interrupt,
}

#[derive(Debug)]
struct JobLoad<'a> {
    name: String,
    job: &'a Job,
    transfer: Transfer<'a>,
    schedule: Schedule,
    /// The number of I/Os that end the point; None: another job or the time ends it.
    ios: Option<u64>,
}

impl<'a> ArrivalsLoad<'a> {
    /// Opens the targets of the point's jobs with arrivals; `target` returns each.
    pub fn open(
        point: &'a PlannedPoint,
        seed: u64,
        target: &dyn Fn(&Job) -> Target,
        stop: &'a Interrupt,
    ) -> Result<ArrivalsLoad<'a>, LoadError> {
        let mut jobs = Vec::new();
        for (index, job) in point.jobs.iter().enumerate() {
            let seed = seed_of(seed, point.index, index, 0);
            let Some(schedule) = Schedule::new(job, seed) else { continue };
            jobs.push(JobLoad {
                name: job_name(point, job),
                job,
                transfer: Transfer::open(job, seed, &target(job))?,
                schedule,
                ios: point.length.ios.filter(|_| point.main_job() == Some(index)),
            });
        }
        let seconds = point.length.seconds.map(Duration::from_secs);
        Ok(ArrivalsLoad { jobs, busy: &point.busy, seconds, stop })
    }

    /// Runs until the point ends. It calls `tick` meanwhile, which may end the point. Results are
    /// by fio's job name.
    pub fn run<E: From<LoadError>>(
        self,
        tick: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<BTreeMap<String, JobOutput>, E> {
        let started = Instant::now();
        let running = Running {
            started,
            ends: self.seconds.map(|seconds| started + seconds),
            over: AtomicBool::new(false),
            starting: AtomicUsize::new(self.jobs.len()),
            waiter: thread::current(),
        };
        let (running, stop) = (&running, self.stop);
        thread::scope(|scope| {
            let threads: Vec<_> = self
                .jobs
                .into_iter()
                .map(|job| (job.name.clone(), scope.spawn(move || job.thread(running))))
                .collect();
            let busy = busy::start(scope, self.busy, running);
            let mut ticked = Ok(());
            while !threads.iter().all(|(_, thread)| thread.is_finished()) {
                if stop.requested() || ticked.is_err() {
                    running.over.store(true, Ordering::Release);
                }
                if running.over.load(Ordering::Acquire) {
                    threads.iter().for_each(|(_, thread)| thread.thread().unpark());
                }
                thread::park_timeout(LOOK_EVERY);
                ticked = ticked.and_then(|()| tick());
            }
            let mut outputs = BTreeMap::new();
            for (name, thread) in threads {
                let output =
                    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
                outputs.insert(name, output);
            }
            running.over.store(true, Ordering::Release);
            for thread in busy {
                thread.thread().unpark();
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            }
            ticked?;
            if stop.requested() { Err(LoadError::Interrupted.into()) } else { Ok(outputs) }
        })
    }
}

impl JobLoad<'_> {
    fn thread(self, running: &Running) -> Result<JobOutput, LoadError> {
        let ends_point = self.ios.is_some();
        let output = self.ios(running);
        if ends_point || output.is_err() {
            running.end();
        } else {
            running.waiter.unpark();
        }
        output
    }

    fn ios(mut self, running: &Running) -> Result<JobOutput, LoadError> {
        let mut progress = Progress {
            buffer: self.transfer.buffer()?,
            done: Done::default(),
            index: 0,
            lateness: Lateness::new(self.job, running.started),
            is_over: false,
        };
        running.starting.fetch_sub(1, Ordering::AcqRel);
        match self.job.thread_arrivals {
            None => self.serve(&mut progress, usize::MAX, running)?,
            Some(count) => {
                let count = usize::try_from(count).unwrap_or(usize::MAX);
                while !progress.is_over {
                    thread::scope(|scope| {
                        let thread = scope.spawn(|| self.serve(&mut progress, count, running));
                        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                    })?;
                }
            }
        }
        let lasted = running.started.elapsed();
        let mut output = JobOutput {
            duration_ns: u64::try_from(lasted.as_nanos()).unwrap_or(u64::MAX),
            ..JobOutput::default()
        };
        progress.done.add_to(&mut output);
        Ok(output)
    }

    /// Serves this number of arrivals, or all, in the calling thread.
    fn serve(
        &mut self,
        progress: &mut Progress,
        arrivals: usize,
        running: &Running,
    ) -> Result<(), LoadError> {
        sleep_exactly()?;
        set_ioprio(self.job.ioprio)?;
        if let Some(priority) = self.job.fifo {
            under_fifo(priority)?;
        }
        // A thread that another thread has started gets no wake-up, so it has to check.
        let look_every = self.job.thread_arrivals.map_or(Duration::MAX, |_| LOOK_EVERY);
        for due in self.schedule.by_ref().take(arrivals) {
            let due = running.started + due;
            let missed = Instant::now() > due && !progress.lateness.excuses(due);
            let wake = progress.lateness.wake(due);
            if !running.wait_until(wake, look_every) {
                progress.is_over = true;
                break;
            }
            for turn in 0..self.job.burst.unwrap_or(1) {
                let begun = if missed && turn == 0 { due } else { Instant::now() };
                let moved = self.transfer.run(progress.index, &mut progress.buffer);
                let ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
                progress.done.add(moved, progress.buffer.len() as u64, ns);
                progress.index += 1;
                if self.ios == Some(progress.index) {
                    progress.is_over = true;
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// The state that one thread of a job passes to the next.
struct Progress {
    buffer: AlignedBuffer,
    done: Done,
    index: u64,
    lateness: Lateness,
    is_over: bool,
}

/// The late wake-ups of a job's thread.
struct Lateness {
    late: Duration,
    every: Duration,
    next: Instant,
    woke: Instant,
}

impl Lateness {
    fn new(job: &Job, started: Instant) -> Lateness {
        let every = Duration::from_millis(job.late_every_ms.unwrap_or(0));
        Lateness {
            late: Duration::from_micros(job.late_us.unwrap_or(0)),
            every,
            next: started + every,
            woke: started,
        }
    }

    /// The time at which the thread wakes up for the arrival at `due`.
    fn wake(&mut self, due: Instant) -> Instant {
        if self.late.is_zero() || due < self.next {
            return due;
        }
        self.next = due + self.every;
        self.woke = due + self.late;
        self.woke
    }

    /// Whether the thread slept at `due`, so that the thread caused the delay itself.
    fn excuses(&self, due: Instant) -> bool {
        due <= self.woke
    }
}

/// More time than a thread here needs from its due time to its I/O, and from one I/O of a burst to
/// the next.
const HOST_US: u32 = 20;

/// The task that a real-time job with periodic arrivals declares to k2; None for another job, or if
/// its times are too long.
pub fn task_of(job: &Job, block_us: u64) -> Option<Task> {
    let Ioprio::RealTime(level) = job.ioprio else { return None };
    if job.arrivals != Some(Pattern::Periodic) {
        return None;
    }
    Some(Task {
        level: level.into(),
        period_us: u32::try_from(job.gap_us?).ok()?,
        jitter_us: u32::try_from(job.jitter_us.unwrap_or(0)).ok()? + HOST_US,
        think_us: if job.burst.unwrap_or(1) > 1 { HOST_US } else { 0 },
        block_us: u32::try_from(block_us).ok()?,
        exact: 0,
        sporadic: false,
        owner: Owner::Process,
    })
}

/// Sets the I/O priority of the calling thread.
fn set_ioprio(ioprio: Ioprio) -> Result<(), LoadError> {
    let (class, level) = match ioprio {
        Ioprio::RealTime(level) => (IO_CLASS_REAL_TIME, level),
        Ioprio::BestEffort(level) => (IO_CLASS_BEST_EFFORT, level),
        Ioprio::Idle => (IO_CLASS_IDLE, 0),
        Ioprio::None => (0, 0),
    };
    let what = "I/O priority of a job with arrivals (the real-time class needs root)".into();
    set_io_priority(class, level).map_err(|source| LoadError::Io { what, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_thread_misses_by_itself_what_was_due_while_it_slept() {
        let started = Instant::now();
        let at = |ms| started + Duration::from_millis(ms);
        let (late, every) = (Duration::from_millis(25), Duration::from_millis(100));
        let mut lateness = Lateness { late, every, next: at(100), woke: started };
        assert_eq!(lateness.wake(at(90)), at(90));
        assert!(!lateness.excuses(at(90)));
        assert_eq!(lateness.wake(at(100)), at(125));
        assert!(lateness.excuses(at(120)) && !lateness.excuses(at(130)));
        assert_eq!(lateness.wake(at(110)), at(110));
        assert_eq!(lateness.wake(at(200)), at(225));
    }

    #[test]
    fn without_a_lateness_all_wake_up_in_time() {
        let started = Instant::now();
        let (late, every) = (Duration::ZERO, Duration::ZERO);
        let mut lateness = Lateness { late, every, next: started, woke: started };
        let due = started + Duration::from_millis(10);
        assert_eq!(lateness.wake(due), due);
        assert!(!lateness.excuses(due));
    }
}
