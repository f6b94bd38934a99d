// SPDX-License-Identifier: MIT OR Apache-2.0
//! The measured thread, which has the deadline: takes records from a source and records them.
//! `session` runs it.
//!
//! It measures one call: write() or append(), as a real application would make it. It reads the
//! kernel's counters around each call, outside the measured time, so that a long call can be
//! explained: see [`steadyio_recorder::task`]. That takes four system calls. If the deadline
//! belongs to another program, calls are measured only on request.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use steadyio_core::interrupt::Interrupt;
use steadyio_core::latency::Latencies;
use steadyio_recorder::config::ChannelConfig;
use steadyio_recorder::source::{Record, Source, now_ns};
use steadyio_recorder::task::{Counters, Probe};

/// The number of longest calls kept with their counters.
const WORST: usize = 10;

pub trait Sink {
    /// Takes a record; this call is measured. The sink counts a lost record, which is not an error.
    fn take(&mut self, record: &Record<'_>) -> io::Result<()>;

    /// Adds a channel while recording. Returns its position, or the reason why it cannot be
    /// recorded.
    fn declare(&mut self, channel: &ChannelConfig) -> Result<usize, String> {
        Err(format!("{:?} cannot be added", channel.topic))
    }

    /// Whether the recording has ended, so that no further record is taken.
    fn has_ended(&self) -> bool {
        false
    }

    /// The rest of the thread's work per record, which is not measured.
    fn settle(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The values that other threads may read meanwhile.
#[derive(Debug, Default)]
pub struct Gauge {
    pub call_ns_max: AtomicU64,
}

/// The reason for a long call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The thread slept in the kernel.
    Blocked,
    /// Another thread had the CPU.
    Preempted,
    /// The thread had the CPU all along: its own work, interrupts, or a hypervisor.
    Running,
}

/// A long call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct WorstCall {
    /// The index of the record.
    pub record: u64,
    pub ns: u64,
    pub cause: Cause,
    /// The kernel's counters during the call.
    pub kernel: Counters,
}

/// The limit for late records, and the selection of measurements.
#[derive(Debug, Clone, Copy)]
pub struct Measuring {
    /// The period.
    pub late_after_ns: u64,
    /// Whether to measure each call and its lateness.
    pub calls: bool,
}

/// The result of a run.
#[derive(Debug, Clone)]
pub struct CallerReport {
    /// The measured calls.
    pub calls: Latencies,
    /// The times from a record's due time to its call.
    pub lateness: Latencies,
    /// The number of records that came a period or more late.
    pub late: u64,
    /// The number of calls in which the thread slept.
    pub blocked_calls: u64,
    /// The number of calls in which the thread was preempted and did not sleep.
    pub preempted_calls: u64,
    /// The longest calls, the longest first.
    pub worst: Vec<WorstCall>,
    /// The thread's counters from its first to its last record, including its waits for the period.
    pub kernel: Counters,
    /// The time from the first record to the last.
    pub duration_ns: u64,
    /// Whether it was asked to stop before the source ended.
    pub interrupted: bool,
    /// The error that ended it early.
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

/// The means of measuring.
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

    /// A sink that sleeps in one call.
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
