// SPDX-License-Identifier: MIT OR Apache-2.0
//! The measured thread, which has the deadline: takes records from a source and records them.
//!
//! One call is measured: write() or append(), which a real application would make. The kernel's
//! counters are read around each call, outside the measured time, so that a long call can be
//! explained: see [`steadyio_recorder::task`]. That takes four system calls. Calls whose deadline
//! is another program's are measured only on request.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use steadyio_core::interrupt::Interrupt;
use steadyio_core::latency::Latencies;
use steadyio_recorder::config::ChannelConfig;
use steadyio_recorder::source::{Record, Source, now_ns};
use steadyio_recorder::task::{Counters, Probe};

/// Number of longest calls kept with their counters.
const WORST: usize = 10;

pub trait Sink {
    /// The call that is measured. The sink counts a lost record; it is no error.
    fn take(&mut self, record: &Record<'_>) -> io::Result<()>;

    /// A channel that comes while recording; returns its position, or why it cannot be recorded.
    fn declare(&mut self, channel: &ChannelConfig) -> Result<usize, String> {
        Err(format!("{:?} cannot be added", channel.topic))
    }

    /// Whether nothing is recorded any more, whatever comes.
    fn has_ended(&self) -> bool {
        false
    }

    /// Further work of the thread per record; not measured.
    fn settle(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Readable by other threads meanwhile.
#[derive(Debug, Default)]
pub struct Gauge {
    pub call_ns_max: AtomicU64,
}

/// Why a call was long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// It slept in the kernel.
    Blocked,
    /// Another thread had the CPU.
    Preempted,
    /// It had the CPU all along: its own work, interrupts, or a hypervisor.
    Running,
}

/// A long call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct WorstCall {
    /// Index of the record.
    pub record: u64,
    pub ns: u64,
    pub cause: Cause,
    /// What the kernel counted meanwhile.
    pub kernel: Counters,
}

/// The limit for late records, and the measured quantities.
#[derive(Debug, Clone, Copy)]
pub struct Measuring {
    /// The period.
    pub late_after_ns: u64,
    /// Whether each call is, and how late it comes.
    pub calls: bool,
}

/// The result of a run.
#[derive(Debug, Clone)]
pub struct CallerReport {
    /// Those that were measured.
    pub calls: Latencies,
    /// From the time a record was due to its call.
    pub lateness: Latencies,
    /// Records that came a period or more late.
    pub late: u64,
    /// Calls in which the thread slept.
    pub blocked_calls: u64,
    /// Calls in which the thread was preempted and did not sleep.
    pub preempted_calls: u64,
    /// Longest first.
    pub worst: Vec<WorstCall>,
    /// The thread from its first to its last record, its waiting for the period included.
    pub kernel: Counters,
    /// From the first record to the last.
    pub duration_ns: u64,
    /// Whether it was asked to stop before the source ended.
    pub interrupted: bool,
    /// Error that ended it early.
    pub error: Option<String>,
}

/// Runs a source into a sink until one of them ends or fails, or `stop` is set.
pub fn run(
    source: &mut dyn Source,
    sink: &mut dyn Sink,
    measuring: Measuring,
    stop: &Interrupt,
    gauge: &Gauge,
) -> CallerReport {
    let probe = Probe::new();
    let first = probe.read();
    let started_ns = now_ns();
    let mut report = CallerReport {
        calls: Latencies::default(),
        lateness: Latencies::default(),
        late: 0,
        blocked_calls: 0,
        preempted_calls: 0,
        worst: Vec::with_capacity(WORST + 1),
        kernel: Counters::default(),
        duration_ns: 0,
        interrupted: false,
        error: None,
    };
    let meter = Meter { measuring, probe: &probe, gauge };
    let ended = report.run(source, sink, stop, &meter);
    report.error = ended.err().map(|error| error.to_string());
    report.interrupted = stop.requested();
    report.kernel = probe.read().since(&first);
    report.duration_ns = now_ns() - started_ns;
    report
}

fn cause(kernel: &Counters) -> Cause {
    match kernel {
        Counters { voluntary_switches: 1.., .. } => Cause::Blocked,
        Counters { involuntary_switches: 1.., .. } => Cause::Preempted,
        Counters { run_delay_ns: Some(1..), .. } => Cause::Preempted,
        _ => Cause::Running,
    }
}

/// What a run measures with.
struct Meter<'a> {
    measuring: Measuring,
    probe: &'a Probe,
    gauge: &'a Gauge,
}

impl CallerReport {
    fn run(
        &mut self,
        source: &mut dyn Source,
        sink: &mut dyn Sink,
        stop: &Interrupt,
        meter: &Meter<'_>,
    ) -> io::Result<()> {
        let mut number = 0;
        while !stop.requested() && !sink.has_ended() {
            let record = match source.next() {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                    if let Some(channel) = source.declares() {
                        source.is_declared(sink.declare(&channel))?;
                    }
                    continue;
                }
                Err(error) => return Err(error),
            };
            if meter.measuring.calls {
                self.measure(number, sink, &record, meter)?;
            } else {
                sink.take(&record)?;
            }
            sink.settle()?;
            number += 1;
        }
        Ok(())
    }

    fn measure(
        &mut self,
        number: u64,
        sink: &mut dyn Sink,
        record: &Record<'_>,
        meter: &Meter<'_>,
    ) -> io::Result<()> {
        let before = meter.probe.read();
        let start_ns = now_ns();
        let taken = sink.take(record);
        let ns = now_ns() - start_ns;
        let kernel = meter.probe.read().since(&before);
        taken?;
        if let Some(due_ns) = record.due_ns {
            let late_ns = start_ns.saturating_sub(due_ns);
            self.lateness.add(late_ns);
            self.late += u64::from(late_ns >= meter.measuring.late_after_ns);
        }
        self.count(number, ns, kernel);
        meter.gauge.call_ns_max.store(self.calls.max(), Ordering::Relaxed);
        Ok(())
    }

    fn count(&mut self, record: u64, ns: u64, kernel: Counters) {
        self.calls.add(ns);
        let cause = cause(&kernel);
        self.blocked_calls += u64::from(cause == Cause::Blocked);
        self.preempted_calls += u64::from(cause == Cause::Preempted);
        let place = self.worst.partition_point(|worse| worse.ns >= ns);
        if place < WORST {
            self.worst.insert(place, WorstCall { record, ns, cause, kernel });
            self.worst.truncate(WORST);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;
    use steadyio_recorder::source::Periodic;

    /// Sleeps in one call.
    struct SleepsOnce {
        at: u8,
        taken: Vec<u8>,
    }

    impl Sink for SleepsOnce {
        fn take(&mut self, record: &Record<'_>) -> io::Result<()> {
            self.taken.push(record.data[0]);
            if record.data[0] == self.at {
                thread::sleep(Duration::from_millis(20));
            }
            Ok(())
        }
    }

    #[test]
    fn a_call_that_sleeps_is_found_and_explained() {
        let mut source = Periodic::new(Duration::from_millis(1), 8, 30);
        let mut sink = SleepsOnce { at: 7, taken: Vec::new() };
        let gauge = Gauge::default();
        let measuring = Measuring { late_after_ns: 1_000_000, calls: true };
        let report = run(&mut source, &mut sink, measuring, &Interrupt::default(), &gauge);
        assert_eq!(sink.taken, (0..30).collect::<Vec<u8>>());
        // Other calls may have waited longer for a CPU.
        let slept = report.worst.iter().find(|worst| worst.record == 7);
        assert!(slept.is_some_and(|slept| slept.cause == Cause::Blocked && slept.ns >= 20_000_000));
        assert_eq!(gauge.call_ns_max.load(Ordering::Relaxed), report.worst[0].ns);
        // The records that were due meanwhile came late.
        assert!(report.late >= 15, "{}", report.late);
        assert!(report.blocked_calls >= 1 && report.worst.len() == WORST);
    }

    #[test]
    fn calls_are_measured_only_if_that_is_asked_for() {
        let mut source = Periodic::new(Duration::from_millis(1), 8, 3);
        let mut sink = SleepsOnce { at: 1, taken: Vec::new() };
        let gauge = Gauge::default();
        let measuring = Measuring { late_after_ns: 1_000_000, calls: false };
        let report = run(&mut source, &mut sink, measuring, &Interrupt::default(), &gauge);
        assert_eq!((report.calls.histogram().count(), report.worst.len()), (0, 0));
        assert_eq!(sink.taken, [0, 1, 2]);
    }
}
