// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes while pieces are deleted.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use steadyio_core::interrupt::Interrupt;
use steadyio_probe::deleting::{Deleting, measure};
use steadyio_probe::place::{ProbeError, Writes};

const PIECES: u64 = 8;
const USUAL_NS: u64 = 1_000_000;
const LONG_NS: u64 = 7_000_000;
/// No test takes so long.
const LENGTH: Duration = Duration::from_secs(60);

/// Of this card the first write after each deletion takes longer.
struct Card<'a> {
    deleted: &'a AtomicU64,
    seen: u64,
}

impl Writes for Card<'_> {
    fn size_bytes(&self) -> u64 {
        64 << 20
    }

    fn timed(&mut self, offset: u64, kib: u64) -> Result<u64, ProbeError> {
        assert!(offset + (kib << 10) <= self.size_bytes());
        let deleted = self.deleted.load(Ordering::SeqCst);
        let is_first = deleted > self.seen;
        self.seen = deleted;
        Ok(if is_first { LONG_NS } else { USUAL_NS })
    }

    fn timed_flush(&mut self) -> Result<u64, ProbeError> {
        Ok(0)
    }
}

fn measured(
    pieces: u64,
    delete: impl FnMut(u64) -> Result<(), ProbeError> + Send,
    deleted: &AtomicU64,
    stop: &Interrupt,
) -> Result<Deleting, ProbeError> {
    measure(&mut Card { deleted, seen: 0 }, pieces, delete, LENGTH, stop)
}

#[test]
fn as_much_is_deleted_as_is_written_and_the_longest_write_meanwhile_is_found() {
    let (deleted, mut pieces) = (AtomicU64::new(0), Vec::new());
    let delete = |piece: u64| {
        pieces.push(piece);
        deleted.fetch_add(1, Ordering::SeqCst);
        Ok(())
    };
    let found = measured(PIECES, delete, &deleted, &Interrupt::default()).unwrap();
    assert_eq!(pieces, Vec::from_iter(0..PIECES));
    assert_eq!((found.longest_ns, found.deleted_kib), (LONG_NS, PIECES * (16 << 10)));
    assert!(found.samples * 64 >= found.deleted_kib, "{found:?}");
    assert!((60_000..64_000).contains(&found.kib_s), "{found:?}");
}

#[test]
fn a_card_that_does_not_delete_ends_the_measurement_with_its_error() {
    let refused = |_: u64| Err(ProbeError::Io("discard".into(), io::Error::other("refused")));
    let ended = measured(PIECES, refused, &AtomicU64::new(0), &Interrupt::default());
    assert!(matches!(ended, Err(ProbeError::Io(..))), "{ended:?}");
}

#[test]
fn a_signal_ends_the_measurement() {
    let stop = Interrupt::default();
    stop.request();
    let ended = measured(PIECES, |_| Ok(()), &AtomicU64::new(0), &stop);
    assert!(matches!(ended, Err(ProbeError::Interrupted)), "{ended:?}");
}
