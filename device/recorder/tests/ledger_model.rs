// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ledger's counters under every interleaving of caller, writer and reader that the memory
//! model allows (loom), and what they say when nothing is concurrent. Alone in its program, since
//! it has atomics of its own in place of the ledger's.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod atomic {
    pub use loom::sync::atomic::{AtomicU64, Ordering};
}
/// The file itself, with the atomics above.
#[allow(dead_code)]
#[path = "../src/ledger.rs"]
mod ledger;

use loom::sync::Arc;
use loom::thread;

use atomic::{AtomicU64, Ordering};
use ledger::{Account, Amount, Ledger};

const ONE: Amount = Amount { records: 1, bytes: 100 };

fn assert_consistent(account: &Account) {
    let (lost, received) = (account.lost().records, account.received.records);
    assert!(account.durable.records <= account.written.records, "{account:?}");
    assert!(account.written.records + lost <= received, "{account:?}");
    assert_eq!(account.buffered.records, received - lost - account.written.records);
}

/// A caller with two records of which the second finds no room, a writer that writes the first and
/// does `then` with it, and a reader who looks twice. `ring` is what hands the record over.
fn model(caller: fn(&Ledger, &AtomicU64), then: fn(&Ledger)) {
    let mut model = loom::model::Builder::new();
    // Bugs of this kind need few preemptions. `make soak` asks for more (LOOM_MAX_PREEMPTIONS).
    model.preemption_bound.get_or_insert(2);
    model.check(move || {
        let ledger = Arc::new(Ledger::default());
        let ring = Arc::new(AtomicU64::new(0));
        let writer = {
            let (ledger, ring) = (Arc::clone(&ledger), Arc::clone(&ring));
            thread::spawn(move || {
                if ring.load(Ordering::Acquire) == 1 {
                    ledger.written(ONE);
                    then(&ledger);
                }
            })
        };
        let reader = {
            let ledger = Arc::clone(&ledger);
            thread::spawn(move || assert_consistent(&ledger.snapshot()))
        };
        caller(&ledger, &ring);
        writer.join().unwrap();
        reader.join().unwrap();
        assert_consistent(&ledger.snapshot());
    });
}

fn append_then_lose(ledger: &Ledger, ring: &AtomicU64) {
    ledger.received(1, 100);
    ring.store(1, Ordering::Release);
    ledger.received(2, 100);
    ledger.lost(2, 100);
}

#[test]
fn every_snapshot_is_consistent() {
    model(append_then_lose, |ledger| ledger.durable(ONE, 1));
    model(append_then_lose, |ledger| ledger.lost_after_writing(ONE));
}

/// Shows that the model can fail: a record is handed over before it is counted.
#[test]
#[should_panic(expected = "written: Amount")]
fn canary_of_a_caller_that_counts_too_late() {
    let too_late = |ledger: &Ledger, ring: &AtomicU64| {
        ring.store(1, Ordering::Release);
        ledger.received(1, 100);
    };
    model(too_late, |ledger| ledger.durable(ONE, 1));
}

/// Shows that the model can fail: a loss is counted before its record.
#[test]
#[should_panic(expected = "lost_ring_full: Amount")]
fn canary_of_a_loss_without_a_record() {
    let too_early = |ledger: &Ledger, _: &AtomicU64| {
        ledger.lost(1, 100);
        ledger.received(1, 100);
    };
    model(too_early, |ledger| ledger.durable(ONE, 1));
}

#[test]
fn every_record_is_in_one_place() {
    const fn amount(records: u64) -> Amount {
        Amount { records, bytes: records * 100 }
    }
    loom::model(|| {
        let ledger = Ledger::default();
        assert_eq!(ledger.snapshot(), Account::default());
        for i in 1..=10 {
            assert_eq!(ledger.received(i * 1_000, 100), i);
        }
        ledger.lost(9_000, 100);
        ledger.lost(10_000, 100);
        ledger.written(amount(5));
        ledger.durable(amount(3), 3_000);
        ledger.lost_in_writing(amount(1));
        ledger.lost_after_writing(amount(1));
        ledger.lost_ram_full(amount(1));
        ledger.expired(amount(1));
        let account = ledger.snapshot();
        assert_eq!(account.received, amount(10));
        assert_eq!(account.buffered, amount(0));
        assert_eq!((account.written, account.lost()), (amount(4), amount(5)));
        assert_eq!((account.durable, account.not_durable()), (amount(3), 6));
        let lost = (account.first_lost_ns, account.last_lost_ns);
        assert_eq!(lost, (Some(9_000), Some(10_000)));
        let last = (account.last_received_ns, account.last_durable_ns);
        assert_eq!(last, (Some(10_000), Some(3_000)));
    });
}
