// SPDX-License-Identifier: MIT OR Apache-2.0
//! The trait of all sources of records, and a source that makes one record per period. `steady
//! record` and the bench use it.
//!
//! The ext4 recording paper measures with such periodic records.

use std::io;
use std::time::Duration;

use rustix::thread::{ClockId as SleepClock, clock_nanosleep_absolute};
use rustix::time::{ClockId, Timespec, clock_gettime};

use super::config::ChannelConfig;

const NS_PER_S: u64 = 1_000_000_000;
/// Long waits are divided into waits of this length, so that Ctrl-C takes effect.
const WAIT_NS_MAX: u64 = 200_000_000;

/// A record of a source.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// The position of its channel in the configuration.
    pub channel: usize,
    /// The log time in the recording.
    pub log_time_ns: u64,
    /// The publish time in the recording.
    pub publish_time_ns: u64,
    /// The due time on the monotonic clock; None without a period.
    pub due_ns: Option<u64>,
    pub data: &'a [u8],
}

/// A stream of records.
pub trait Source {
    /// Waits for the next record; None at the end. After an error of kind `Interrupted`, check
    /// whether to stop, and call again.
    fn next(&mut self) -> io::Result<Option<Record<'_>>>;

    /// A channel to add to the recording. Ask for it after an error of kind `Interrupted`.
    fn declares(&mut self) -> Option<ChannelConfig> {
        None
    }

    /// Answers [`Source::declares`] before any other call: the channel's position, or the reason
    /// why it cannot be recorded.
    fn is_declared(&mut self, _outcome: Result<usize, String>) -> io::Result<()> {
        Ok(())
    }
}

/// The monotonic clock in ns.
pub fn now_ns() -> u64 {
    to_ns(clock_gettime(ClockId::Monotonic))
}

/// The wall clock in ns since 1970.
pub fn wall_ns() -> u64 {
    to_ns(clock_gettime(ClockId::Realtime))
}

fn to_ns(time: Timespec) -> u64 {
    let s = u64::try_from(time.tv_sec).unwrap_or(0);
    s * NS_PER_S + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Sleeps until the monotonic clock shows `ns`.
pub fn sleep_until_ns(ns: u64) -> io::Result<()> {
    let until = Timespec {
        tv_sec: i64::try_from(ns / NS_PER_S).unwrap_or(i64::MAX),
        tv_nsec: (ns % NS_PER_S) as _,
    };
    Ok(clock_nanosleep_absolute(SleepClock::Monotonic, &until)?)
}

/// Makes one record per period. Late records follow at once, so none is skipped.
#[derive(Debug)]
pub struct Periodic {
    period_ns: u64,
    records: u64,
    next: u64,
    started: Option<Started>,
    data: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct Started {
    monotonic_ns: u64,
    wall_ns: u64,
}

impl Periodic {
    /// Makes `records` of `bytes` each. A period of zero means as fast as the recorder takes them.
    pub fn new(period: Duration, bytes: usize, records: u64) -> Periodic {
        // Not compressible, and the same in each run.
        let mut word = 0x9e37_79b9_7f4a_7c15_u64;
        let mut noise = || {
            word ^= word << 13;
            word ^= word >> 7;
            word ^= word << 17;
            word as u8
        };
        let data = (0..bytes).map(|_| noise()).collect();
        let period_ns = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
        Periodic { period_ns, records, next: 0, started: None, data }
    }
}

impl Source for Periodic {
    fn next(&mut self) -> io::Result<Option<Record<'_>>> {
        if self.next == self.records {
            return Ok(None);
        }
        let start = || Started { monotonic_ns: now_ns() + self.period_ns, wall_ns: wall_ns() };
        let started = *self.started.get_or_insert_with(start);
        let offset_ns = self.next * self.period_ns;
        let due_ns = (self.period_ns > 0).then_some(started.monotonic_ns + offset_ns);
        if let Some(due_ns) = due_ns {
            let now_ns = now_ns();
            sleep_until_ns(due_ns.min(now_ns + WAIT_NS_MAX))?;
            if due_ns > now_ns + WAIT_NS_MAX {
                return Err(io::ErrorKind::Interrupted.into());
            }
        }
        // Each record has its number, so a reader can find which one is missing.
        let number = self.next.to_le_bytes();
        let stamped = number.len().min(self.data.len());
        self.data[..stamped].copy_from_slice(&number[..stamped]);
        self.next += 1;
        let log_time_ns = match due_ns {
            Some(_) => started.wall_ns + offset_ns,
            None => wall_ns(),
        };
        let (publish_time_ns, data) = (log_time_ns, &self.data[..]);
        Ok(Some(Record { channel: 0, log_time_ns, publish_time_ns, due_ns, data }))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn records_are_numbered_and_a_period_apart() {
        let mut source = Periodic::new(Duration::from_millis(1), 16, 3);
        let mut last: Option<(u64, u64)> = None;
        for number in 0..3u64 {
            let record = source.next().unwrap().unwrap();
            assert_eq!(record.data[..8], number.to_le_bytes());
            let due_ns = record.due_ns.unwrap();
            assert!(now_ns() >= due_ns);
            if let Some((log, due)) = last {
                assert_eq!((record.log_time_ns - log, due_ns - due), (1_000_000, 1_000_000));
            }
            last = Some((record.log_time_ns, due_ns));
        }
        assert!(source.next().unwrap().is_none());
    }
}
