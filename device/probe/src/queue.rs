// SPDX-License-Identifier: MIT OR Apache-2.0
//! What overlaps when several commands are with the device.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use steadyio_core::interrupt::Interrupt;
use steadyio_core::random::{below, draw};

use crate::fit::Times;
use crate::place::{KIB_MAX, Place, ProbeError, Way};

/// As many reads at a time as are tried.
const THREADS: u64 = 16;
const SMALL_KIB: u64 = 4;
/// Less is no gain.
const GAIN_MIN: f64 = 1.2;
/// Most that the lab's card has.
const UNITS_MAX: u64 = 16;
const DEPTH_MAX: u64 = 32;
/// After so many reads, the time per read in the model changes by less than one unit changes it.
const MODELED: u64 = 20_000;
const SEED: u64 = 3;

/// A command queue; times per KiB are on the bus that all units share, and on one unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Queue {
    pub depth: u64,
    pub units: u64,
    pub bus_per_kib_ns: f64,
}

/// Measures random reads, small and large, for so long each. None: they do not overlap.
pub fn find(
    path: &Path,
    size_bytes: u64,
    reads: &Times,
    tags: u64,
    length: Duration,
    stop: &Interrupt,
) -> Result<Option<Queue>, ProbeError> {
    let each_ns = |kib| together(path, size_bytes, kib, length, stop);
    Ok(from_times(reads, each_ns(SMALL_KIB)?, each_ns(KIB_MAX)?, tags))
}

/// From the time per read with 16 at a time. The units are those with which the lab's card takes as
/// long for small reads.
pub fn from_times(reads: &Times, small_ns: f64, large_ns: f64, tags: u64) -> Option<Queue> {
    let alone_ns = reads.line.at(SMALL_KIB as f64) + reads.jump_ns;
    if small_ns <= 0.0 || alone_ns / small_ns < GAIN_MIN {
        return None;
    }
    let bus_per_kib_ns = (large_ns / KIB_MAX as f64).min(reads.line.per_kib);
    let on_bus_ns = SMALL_KIB as f64 * bus_per_kib_ns;
    let off =
        |units: u64| (modeled_ns(units, alone_ns - on_bus_ns, on_bus_ns) / small_ns).ln().abs();
    let nearest =
        (1..=UNITS_MAX).map(|units| (off(units), units)).min_by(|a, b| a.0.total_cmp(&b.0));
    let units = nearest.map_or(1, |(_, units)| units);
    Some(Queue { depth: tags.min(DEPTH_MAX), units, bus_per_kib_ns })
}

/// Mean time from the end of one read to that of the next on the lab's card, with 16 at a time at
/// random places. They meet on a unit by chance, and their data crosses the bus in the order in
/// which they were sent: behind one that waits for its unit, those of idle units wait, too.
fn modeled_ns(units: u64, on_unit_ns: f64, on_bus_ns: f64) -> f64 {
    let mut unit_free_ns = [0.0_f64; UNITS_MAX as usize];
    let mut ends_ns = [0.0_f64; THREADS as usize];
    let mut bus_free_ns = 0.0_f64;
    for number in 0..MODELED {
        // As they end in order, the next one begins when that of 16 before ends.
        let end_ns = &mut ends_ns[(number % THREADS) as usize];
        let free_ns = &mut unit_free_ns[below(draw(SEED, number), units) as usize];
        *free_ns = free_ns.max(*end_ns) + on_unit_ns;
        bus_free_ns = bus_free_ns.max(*free_ns) + on_bus_ns;
        *end_ns = bus_free_ns;
    }
    bus_free_ns / MODELED as f64
}

/// Mean time from the end of one read to that of the next, in ns.
fn together(
    path: &Path,
    size_bytes: u64,
    kib: u64,
    length: Duration,
    stop: &Interrupt,
) -> Result<f64, ProbeError> {
    let mut places = Vec::new();
    for _ in 0..THREADS {
        places.push(Place::open(path, size_bytes, Way::Read)?);
    }
    let started = Instant::now();
    let counts: Vec<Result<u64, ProbeError>> = thread::scope(|scope| {
        let threads: Vec<_> = places
            .into_iter()
            .zip(0_u64..)
            .map(|(place, seed)| {
                scope.spawn(move || reads(place, kib, seed, started, length, stop))
            })
            .collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect()
    });
    let elapsed_ns = started.elapsed().as_nanos() as f64;
    let count: u64 = counts.into_iter().sum::<Result<u64, ProbeError>>()?;
    Ok(elapsed_ns / count.max(1) as f64)
}

fn reads(
    mut place: Place,
    kib: u64,
    seed: u64,
    started: Instant,
    length: Duration,
    stop: &Interrupt,
) -> Result<u64, ProbeError> {
    let blocks = place.size_bytes / (kib << 10);
    let mut count = 0;
    while started.elapsed() < length {
        if stop.requested() {
            return Err(ProbeError::Interrupted);
        }
        place.timed(below(draw(seed, count), blocks) * (kib << 10), kib)?;
        count += 1;
    }
    Ok(count)
}
