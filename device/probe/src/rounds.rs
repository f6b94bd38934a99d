// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is measured, in which order.
//!
//! Sizes take turns, so that each meets what the device does from time to time; a round ends with
//! one command that goes on where the one before ended.

use std::time::{Duration, Instant};

use steadyio_core::interrupt::Interrupt;
use steadyio_core::random::{below, draw};

use crate::place::{KIB_MAX, Place, ProbeError};
use crate::samples::Sample;

const SIZES_KIB: [u64; 5] = [4, 16, 64, 256, KIB_MAX];
const CONTINUED_KIB: u64 = 16;
const SEED: u64 = 2;

/// Commands one after the other, at random places, for so long.
pub fn run(
    place: &mut Place,
    length: Duration,
    stop: &Interrupt,
    tick: &mut dyn FnMut(),
) -> Result<Vec<Sample>, ProbeError> {
    let started = Instant::now();
    let mut samples = Vec::new();
    let mut draws = 0..;
    while started.elapsed() < length {
        if stop.requested() {
            return Err(ProbeError::Interrupted);
        }
        tick();
        for kib in SIZES_KIB {
            let offset = random_offset(place, kib, draws.next().unwrap_or(0));
            samples.push(sample(place, started, offset, kib, false)?);
        }
        let offset = random_offset(place, 2 * CONTINUED_KIB, draws.next().unwrap_or(0));
        samples.push(sample(place, started, offset, CONTINUED_KIB, false)?);
        let next = offset + (CONTINUED_KIB << 10);
        samples.push(sample(place, started, next, CONTINUED_KIB, true)?);
    }
    Ok(samples)
}

fn random_offset(place: &Place, kib: u64, number: u64) -> u64 {
    let bytes = kib << 10;
    below(draw(SEED, number), place.size_bytes / bytes) * bytes
}

fn sample(
    place: &mut Place,
    started: Instant,
    offset: u64,
    kib: u64,
    continues: bool,
) -> Result<Sample, ProbeError> {
    let begun_ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let took_ns = place.timed(offset, kib)?;
    Ok(Sample { kib, continues, begun_ns, took_ns })
}
