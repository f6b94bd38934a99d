// SPDX-License-Identifier: MIT OR Apache-2.0
//! The measurements and their order.
//!
//! Sizes take turns, so that each meets what the device does from time to time; a round ends with
//! one command that goes on where the one before ended. A command during which the disk did
//! anything else is counted and left out: its time is not the device's alone.

use std::time::{Duration, Instant};

use steadyio_core::interrupt::Interrupt;
use steadyio_core::random::{below, draw};

use crate::place::{KIB_MAX, Place, ProbeError, Way};
use crate::samples::{Sample, median};
use crate::traffic::{Meter, Traffic};

const SIZES_KIB: [u64; 5] = [4, 16, 64, 256, KIB_MAX];
const CONTINUED_KIB: u64 = 16;
const SEED: u64 = 2;
/// Of a durable write: one in front of it and one behind, and that of the system call.
const FLUSHES_MAX: u64 = 3;
/// With a larger part of the commands left out, the rest says little about the device.
const DISTURBED_MAX: f64 = 0.5;

/// Commands in a round.
pub const COMMANDS: u64 = SIZES_KIB.len() as u64 + 2;

/// The samples.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rounds {
    pub samples: Vec<Sample>,
    /// Commands that were left out.
    pub disturbed: u64,
    pub length: Duration,
}

/// Commands one after the other, at random places, for so long. The time of `flush_ns` is taken off
/// for each flush that the kernel sent.
pub fn run(
    place: &mut Place,
    meter: &Meter,
    flush_ns: u64,
    length: Duration,
    stop: &Interrupt,
    tick: &mut dyn FnMut(),
) -> Result<Rounds, ProbeError> {
    let started = Instant::now();
    let mut round = Round { place, meter, started, number: 0, alone: Vec::new(), disturbed: 0 };
    while started.elapsed() < length {
        if stop.requested() {
            return Err(ProbeError::Interrupted);
        }
        tick();
        round.all()?;
    }
    let found = with_usual_flushes(round.alone, round.disturbed, flush_ns, started.elapsed());
    let all = found.disturbed + found.samples.len() as u64;
    if found.disturbed as f64 > DISTURBED_MAX * all as f64 {
        return Err(ProbeError::Busy { disturbed: found.disturbed, all });
    }
    Ok(found)
}

/// How many flushes the kernel sends behind a durable write depends on the file system, and is the
/// same each time. With another number one was somebody else's, such as a journal's.
fn with_usual_flushes(
    alone: Vec<(Sample, u64)>,
    disturbed: u64,
    flush_ns: u64,
    length: Duration,
) -> Rounds {
    let usual = median(alone.iter().map(|(_, flushes)| *flushes as f64).collect()) as u64;
    let count = alone.len();
    let of_device = |(sample, flushes): (Sample, u64)| {
        let took_ns = sample.took_ns.saturating_sub(flushes * flush_ns);
        (flushes == usual).then_some(Sample { took_ns, ..sample })
    };
    let samples: Vec<Sample> = alone.into_iter().filter_map(of_device).collect();
    Rounds { disturbed: disturbed + (count - samples.len()) as u64, samples, length }
}

struct Round<'a> {
    place: &'a mut Place,
    meter: &'a Meter,
    started: Instant,
    number: u64,
    /// Commands that met no other, each with the flushes behind it.
    alone: Vec<(Sample, u64)>,
    disturbed: u64,
}

impl Round<'_> {
    fn all(&mut self) -> Result<(), ProbeError> {
        let first = self.number * COMMANDS;
        for (kib, number) in SIZES_KIB.into_iter().zip(first..) {
            let offset = self.random_offset(kib, number);
            let before = self.traffic();
            self.sample(before, offset, kib, false)?;
        }
        let offset = self.random_offset(2 * CONTINUED_KIB, first + COMMANDS);
        let before = self.traffic();
        let before = self.sample(before, offset, CONTINUED_KIB, false)?;
        // Nothing may have come between: it continues the one before.
        self.sample(before, offset + (CONTINUED_KIB << 10), CONTINUED_KIB, true)?;
        self.number += 1;
        Ok(())
    }

    fn random_offset(&self, kib: u64, number: u64) -> u64 {
        let bytes = kib << 10;
        below(draw(SEED, number), self.place.size_bytes / bytes) * bytes
    }

    /// Of a disk that has gone nothing: the next command says so.
    fn traffic(&self) -> Traffic {
        self.meter.read().unwrap_or_default()
    }

    /// `before`: what the disk had done. Returns what it has done after the command.
    fn sample(
        &mut self,
        before: Traffic,
        offset: u64,
        kib: u64,
        continues: bool,
    ) -> Result<Traffic, ProbeError> {
        let begun_ns = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let took_ns = self.place.timed(offset, kib)?;
        let after = self.traffic();
        let did = after.since(before);
        let flushes_max = if self.place.way() == Way::DurableWrite { FLUSHES_MAX } else { 0 };
        if did.is_only(kib, self.place.writes(), flushes_max) {
            let round = u32::try_from(self.number).unwrap_or(u32::MAX);
            let written_kib = before.written_kib();
            let sample = Sample { kib, continues, round, begun_ns, took_ns, written_kib };
            self.alone.push((sample, did.flushes));
        } else {
            self.disturbed += 1;
        }
        Ok(after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(took_ns: u64) -> Sample {
        Sample { kib: 4, continues: false, round: 0, begun_ns: 0, took_ns, written_kib: 0 }
    }

    #[test]
    fn the_flush_of_a_device_is_taken_off_and_that_of_a_journal_leaves_the_write_out() {
        let found = |alone| with_usual_flushes(alone, 2, 3_000, Duration::ZERO);
        let device = found(vec![(sample(5_000), 1), (sample(5_100), 1), (sample(2_000), 0)]);
        let took_ns: Vec<u64> = device.samples.iter().map(|sample| sample.took_ns).collect();
        assert_eq!((took_ns, device.disturbed), (vec![2_000, 2_100], 3));
        let file = found(vec![(sample(2_000), 0), (sample(2_100), 0), (sample(6_000), 1)]);
        let took_ns: Vec<u64> = file.samples.iter().map(|sample| sample.took_ns).collect();
        assert_eq!((took_ns, file.disturbed), (vec![2_000, 2_100], 3));
    }
}
