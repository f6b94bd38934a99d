// SPDX-License-Identifier: MIT OR Apache-2.0
//! The volatile cache: how much it takes before a write waits for it, and what a flush costs.

use steadyio_core::interrupt::Interrupt;

use crate::line::Line;
use crate::place::{ProbeError, Writes};
use crate::samples::median;
use crate::traffic::Traffic;

const PIECE_KIB: u64 = 16;
/// A cache that takes more is not told from one without end.
const KIB_MAX: u64 = 64 << 10;
/// A write that takes so many times the usual time has found the cache full.
const LONG: f64 = 5.0;
const REPEATS: usize = 5;
const FLUSHES: u64 = 20;
/// So much longer is a flush of more if the cache holds it.
const HOLDS: f64 = 1.2;
const MUCH_PIECES: u64 = 64;
const FLUSHED_KIB: u64 = 4;

/// How much was taken before a write had to wait: the least of several times; None: the limit was
/// reached. The place's way is [`crate::place::Way::Write`]. `traffic`: what its disk has done so
/// far.
pub fn capacity_kib(
    place: &mut impl Writes,
    traffic: &impl Fn() -> Traffic,
    stop: &Interrupt,
) -> Result<Option<u64>, ProbeError> {
    let mut least: Option<u64> = None;
    for _ in 0..REPEATS {
        place.timed_flush()?;
        let found = filled_kib(place, traffic, stop)?;
        least = least.into_iter().chain(found).min();
    }
    place.timed_flush()?;
    Ok(least)
}

/// A write that met other I/O may have waited for that. What others write fills the cache, too.
fn filled_kib(
    place: &mut impl Writes,
    traffic: &impl Fn() -> Traffic,
    stop: &Interrupt,
) -> Result<Option<u64>, ProbeError> {
    let pieces = (KIB_MAX / PIECE_KIB).min(place.size_bytes() / (PIECE_KIB << 10));
    let (empty, mut took_ns) = (traffic(), Vec::new());
    for piece in 0..pieces {
        if stop.requested() {
            return Err(ProbeError::Interrupted);
        }
        let before = traffic();
        let ns = place.timed(piece * (PIECE_KIB << 10), PIECE_KIB)? as f64;
        if !traffic().since(before).is_only(PIECE_KIB, true, 0) {
            continue;
        }
        if !took_ns.is_empty() && ns > LONG * median(took_ns.clone()) {
            let all_kib = before.since(empty).written_kib();
            return Ok(Some(all_kib.max(piece * PIECE_KIB)));
        }
        took_ns.push(ns);
    }
    Ok(None)
}

/// Times of flushes: of next to nothing, and of a cache with more in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flushes {
    pub little_ns: f64,
    pub much_ns: f64,
}

impl Flushes {
    pub fn of(place: &mut impl Writes, stop: &Interrupt) -> Result<Flushes, ProbeError> {
        let little_ns = flush_ns(place, 1, stop)?;
        Ok(Flushes { little_ns, much_ns: flush_ns(place, MUCH_PIECES, stop)? })
    }

    /// What a flush takes by itself: that of little, less what it writes.
    pub fn base_ns(self) -> f64 {
        let per_piece_ns = (self.much_ns - self.little_ns) / (MUCH_PIECES - 1) as f64;
        (self.little_ns - per_piece_ns).max(0.0)
    }

    /// Whether a write waits in the cache: then the flush behind it writes it.
    pub fn show_a_cache(self) -> bool {
        self.much_ns > HOLDS * self.little_ns
    }
}

/// The time of a flush after so many small writes, in ns.
fn flush_ns(place: &mut impl Writes, pieces: u64, stop: &Interrupt) -> Result<f64, ProbeError> {
    let mut took_ns = Vec::new();
    for number in 0..FLUSHES {
        if stop.requested() {
            return Err(ProbeError::Interrupted);
        }
        for piece in 0..pieces {
            place.timed((number * pieces + piece) * (FLUSHED_KIB << 10), FLUSHED_KIB)?;
        }
        took_ns.push(place.timed_flush()? as f64);
    }
    Ok(median(took_ns))
}

/// The time of writes that the cache takes. Leaves it empty: the next flush would write back the
/// rest, and count as a stall.
pub fn accepts(
    place: &mut impl Writes,
    capacity_kib: u64,
    stop: &Interrupt,
) -> Result<Line, ProbeError> {
    let mut points = Vec::new();
    for kib in [4, 16, 64].into_iter().filter(|kib| 2 * kib <= capacity_kib) {
        let mut took_ns = Vec::new();
        for number in 0..FLUSHES {
            if stop.requested() {
                return Err(ProbeError::Interrupted);
            }
            place.timed_flush()?;
            took_ns.push(place.timed(number * (kib << 10), kib)? as f64);
        }
        points.push((kib as f64, median(took_ns)));
    }
    place.timed_flush()?;
    Ok(Line::through(&points).unwrap_or(Line { base: 0.0, per_kib: 0.0 }))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    const SIZE_KIB: u64 = 256;
    const PER_KIB_NS: u64 = 100;
    const FLUSH_NS: u64 = 1_000_000;
    const BACK_PER_KIB_NS: u64 = 20_000;
    const READ_NS: u64 = 150_000;

    /// As the lab's card: a write that does not fit waits until all is written back.
    struct Cached {
        held_kib: u64,
        traffic: Rc<Cell<Traffic>>,
        /// The file system reads before the write at this offset, once.
        reads_at: Option<u64>,
    }

    impl Cached {
        /// A cache, and what its disk has done.
        fn new(reads_at: Option<u64>) -> (Cached, impl Fn() -> Traffic) {
            let traffic = Rc::<Cell<Traffic>>::default();
            let counts = Rc::clone(&traffic);
            (Cached { held_kib: 0, traffic, reads_at }, move || counts.get())
        }
    }

    impl Writes for Cached {
        fn size_bytes(&self) -> u64 {
            1 << 30
        }

        fn timed(&mut self, offset: u64, kib: u64) -> Result<u64, ProbeError> {
            let fits = self.held_kib + kib <= SIZE_KIB;
            let mut waits_ns = if fits { 0 } else { self.timed_flush()? };
            let mut done = self.traffic.get();
            if self.reads_at.take_if(|at| *at == offset).is_some() {
                (waits_ns, done.read_sectors) = (waits_ns + READ_NS, done.read_sectors + 8);
            }
            done.written_sectors += 2 * kib;
            self.traffic.set(done);
            self.held_kib += kib;
            Ok(waits_ns + kib * PER_KIB_NS)
        }

        fn timed_flush(&mut self) -> Result<u64, ProbeError> {
            let back_ns = std::mem::take(&mut self.held_kib) * BACK_PER_KIB_NS;
            Ok(FLUSH_NS + back_ns)
        }
    }

    #[test]
    fn each_measurement_leaves_the_cache_empty() {
        let ((mut cached, traffic), stop) = (Cached::new(None), Interrupt::default());
        let flushes = Flushes::of(&mut cached, &stop).unwrap();
        assert_eq!((flushes.base_ns().round() as u64, cached.held_kib), (FLUSH_NS, 0));
        let found = capacity_kib(&mut cached, &traffic, &stop).unwrap();
        assert_eq!((found, cached.held_kib), (Some(SIZE_KIB), 0));
        let line = accepts(&mut cached, SIZE_KIB, &stop).unwrap();
        assert_eq!((line.per_kib.round() as u64, cached.held_kib), (PER_KIB_NS, 0));
    }

    #[test]
    fn a_write_that_waited_for_a_read_has_not_found_the_cache_full() {
        let (mut cached, traffic) = Cached::new(Some(128 << 10));
        let found = capacity_kib(&mut cached, &traffic, &Interrupt::default()).unwrap();
        assert_eq!(found, Some(SIZE_KIB));
    }
}
