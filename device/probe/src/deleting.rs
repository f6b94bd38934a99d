// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long durable writes take while as much is deleted as is written.
//!
//! A program that records for ever deletes its oldest file for each new one. A card may erase at
//! once, and delay the writes meanwhile.

use std::panic::resume_unwind;
use std::path::Path;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use steadyio_core::interrupt::Interrupt;
use steadyio_core::random::{below, draw};

use crate::discard::discard;
use crate::place::{Place, ProbeError, Way, Writes};

/// Of one write.
pub const BLOCK_KIB: u64 = 64;
/// Of one deletion.
pub const PIECE_KIB: u64 = 16 << 10;
const SEED: u64 = 4;
const NS_PER_S: u128 = 1_000_000_000;

/// Writes of [`BLOCK_KIB`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deleting {
    pub samples: u64,
    pub deleted_kib: u64,
    pub longest_ns: u64,
    pub kib_s: u64,
}

/// Overwrites blocks in the first half of what holds data, and deletes the second half meanwhile,
/// until all of it is deleted, or for so long. The tests call it with a device of their own.
pub fn find(
    path: &Path,
    size_bytes: u64,
    length: Duration,
    stop: &Interrupt,
) -> Result<Deleting, ProbeError> {
    let piece_bytes = PIECE_KIB << 10;
    let pieces = size_bytes / 2 / piece_bytes;
    let deleted_from = size_bytes - pieces * piece_bytes;
    let discards = Place::open(path, size_bytes, Way::Write)?;
    let mut place = Place::open(path, size_bytes / 2, Way::DurableWrite)?;
    let delete = move |piece| discard(&discards, deleted_from + piece * piece_bytes, piece_bytes);
    measure(&mut place, pieces, delete, length, stop)
}

/// Calls `delete` in a separate thread, with the number of each piece in turn.
pub fn measure(
    place: &mut impl Writes,
    pieces: u64,
    delete: impl FnMut(u64) -> Result<(), ProbeError> + Send,
    length: Duration,
    stop: &Interrupt,
) -> Result<Deleting, ProbeError> {
    let (ask, asked) = sync_channel(1);
    thread::scope(|scope| {
        let deleter = scope.spawn(move || asked.into_iter().try_for_each(delete));
        let written = write(place, pieces, &ask, length, stop);
        drop(ask);
        deleter.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        written
    })
}

/// Asks for the next piece when as much was written. A card may take longer to delete than to write;
/// then the next write does not wait for the thread that deletes.
fn write(
    place: &mut impl Writes,
    pieces: u64,
    ask: &SyncSender<u64>,
    length: Duration,
    stop: &Interrupt,
) -> Result<Deleting, ProbeError> {
    let started = Instant::now();
    let blocks = place.size_bytes() / (BLOCK_KIB << 10);
    let (mut samples, mut asked, mut longest_ns, mut all_ns) = (0, 0, 0, 0_u128);
    while samples == 0 || started.elapsed() < length {
        if stop.requested() {
            return Err(ProbeError::Interrupted);
        }
        let offset = below(draw(SEED, samples), blocks) * (BLOCK_KIB << 10);
        let took_ns = place.timed(offset, BLOCK_KIB)?;
        (samples, longest_ns) = (samples + 1, took_ns.max(longest_ns));
        all_ns += u128::from(took_ns);
        if samples * BLOCK_KIB < asked * PIECE_KIB {
            continue;
        }
        if asked == pieces {
            break;
        }
        match ask.try_send(asked) {
            Ok(()) => asked += 1,
            Err(TrySendError::Full(_)) => {}
            Err(TrySendError::Disconnected(_)) => break,
        }
    }
    let kib_s = u128::from(samples * BLOCK_KIB) * NS_PER_S / all_ns.max(1);
    let kib_s = u64::try_from(kib_s).unwrap_or(u64::MAX).max(1);
    Ok(Deleting { samples, deleted_kib: asked * PIECE_KIB, longest_ns, kib_s })
}
