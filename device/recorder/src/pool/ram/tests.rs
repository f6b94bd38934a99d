// SPDX-License-Identifier: MIT OR Apache-2.0
use std::sync::mpsc::sync_channel;

use proptest::prelude::*;

use super::*;

const RECORD_BYTES: usize = 10;
/// A record with its headers.
const SLOT_BYTES: u64 = 44;

/// The numbers of written records, and those passed over.
#[derive(Default)]
struct Seen {
    written: Vec<u32>,
    passed: Vec<u32>,
    begun_ns: Vec<u64>,
    fails: bool,
}

impl Destination for Seen {
    type Error = ();

    fn write(&mut self, header: Header, payload: [&[u8]; 2], begun_ns: u64) -> Result<(), ()> {
        if self.fails {
            return Err(());
        }
        assert_eq!(payload.concat(), [header.sequence as u8; RECORD_BYTES]);
        self.written.push(header.sequence);
        self.begun_ns.push(begun_ns);
        Ok(())
    }

    fn pass_over(&mut self, header: Header, payload: [&[u8]; 2]) {
        assert_eq!(payload.concat(), [header.sequence as u8; RECORD_BYTES]);
        self.passed.push(header.sequence);
    }
}

/// A memory whose record of number N comes at N ns.
struct Test {
    ram: Ram,
    seen: Seen,
    ledger: Arc<Ledger>,
}

impl Test {
    fn new(records: u64, before_ns: u64, after_ns: u64) -> Test {
        let ledger = Arc::new(Ledger::default());
        let (before, after) = (Duration::from_nanos(before_ns), Duration::from_nanos(after_ns));
        let config =
            RamConfig { bytes: records * SLOT_BYTES + 7, before, after, incidents_max: None };
        let mut ram = Ram::new(config, vec![Arc::clone(&ledger)], false).unwrap();
        ram.left_ns = 0;
        Test { ram, seen: Seen::default(), ledger }
    }

    /// Returns how many were taken.
    fn put(&mut self, numbers: std::ops::RangeInclusive<u32>) -> usize {
        let mut taken = 0;
        for number in numbers {
            self.ram.look(number.into());
            if !self.put_one(number) {
                return taken;
            }
            taken += 1;
            self.ram.looked();
        }
        taken
    }

    fn put_one(&mut self, number: u32) -> bool {
        let header = Header {
            log_time_ns: 1,
            publish_time_ns: 2,
            sequence: number,
            bytes: RECORD_BYTES as u32,
            channel: 0,
        };
        let payload = [number as u8; RECORD_BYTES];
        let (start, end) = payload.split_at(number as usize % RECORD_BYTES);
        let is_taken = self.ram.put(header, [start, end], &mut self.seen);
        if is_taken {
            self.ledger.received(1, RECORD_BYTES as u64);
        }
        is_taken
    }

    fn open(&mut self, name: &str, last_ns: u64, now_ns: u64) {
        let (answer, _) = sync_channel(1);
        self.ram.open(name.into(), Duration::from_nanos(last_ns), answer, now_ns);
    }

    fn write(&mut self) {
        self.ram.write(usize::MAX, &mut self.seen).unwrap();
    }

    fn done(&mut self) -> Option<(String, u64, bool)> {
        let window = self.ram.take_done()?;
        Some((window.name, window.there_from_ns, window.has_records))
    }

    fn lost_and_expired(&self) -> (u64, u64) {
        let account = self.ledger.snapshot();
        (account.lost_ram_full.records, account.expired.records)
    }
}

#[test]
fn a_segment_that_begins_among_records_of_one_look_leaves_some_to_the_one_before() {
    let mut test = Test::new(100, 10, 5);
    test.ram.look(7);
    assert!(test.put_one(7) && test.put_one(8));
    test.ram.looked();
    test.open("a", 10, 9);
    test.write();
    // An incident from 7 on needs the segment before that of record 8.
    assert_eq!(test.seen.begun_ns, [1, 8]);
}

#[test]
fn a_window_reaches_from_before_the_incident_to_after_it() {
    let mut test = Test::new(100, 10, 5);
    test.put(1..=50);
    test.open("a", 10, 50);
    test.write();
    test.put(51..=60);
    test.write();
    assert_eq!(test.seen.written, (40..=55).collect::<Vec<u32>>());
    assert_eq!(test.seen.begun_ns[0], 40, "the first segment begins with the window");
    assert_eq!(test.done(), Some(("a".into(), 40, true)));
    assert_eq!(test.done(), None);
    test.ram.end();
    // 40 to 55 are written.
    assert_eq!(test.lost_and_expired(), (0, 60 - 16));
}

#[test]
fn windows_that_overlap_have_no_gap_and_each_record_once() {
    let mut test = Test::new(100, 10, 5);
    test.put(1..=50);
    test.open("a", 10, 50);
    test.put(51..=53);
    test.open("b", 10, 53);
    test.put(54..=57);
    test.write();
    assert_eq!(test.done().unwrap().0, "a");
    assert_eq!(test.done(), None, "the second goes on");
    test.put(58..=70);
    test.write();
    assert_eq!(test.done().unwrap().0, "b");
    // This one begins in the second window.
    test.open("c", 20, 70);
    test.ram.close();
    test.write();
    assert_eq!(test.done(), Some(("c".into(), 50, true)));
    assert_eq!(test.seen.written, (40..=70).collect::<Vec<u32>>());
}

#[test]
fn what_left_too_early_is_lost_only_if_an_incident_asks_for_it() {
    let mut test = Test::new(4, 10, 0);
    test.put(1..=50);
    assert_eq!(test.seen.passed, (1..=46).collect::<Vec<u32>>(), "latched topics see all");
    test.open("a", 10, 50);
    test.write();
    assert_eq!(test.seen.written, [47, 48, 49, 50]);
    // From 40 to 46; what came before has expired.
    assert_eq!(test.lost_and_expired(), (7, 39));
    test.put(51..=54);
    test.write();
    assert_eq!(test.done(), Some(("a".into(), 46, true)));
    test.ram.end();
    assert_eq!(test.lost_and_expired().0, 7, "no incident asked for the others");
    let account = test.ledger.snapshot();
    assert_eq!(account.received.records, 7 + account.expired.records + 5, "51 was seen at 51");
}

#[test]
fn an_incident_that_reaches_further_back_than_the_one_before_counts_what_that_left_out() {
    let mut test = Test::new(4, 10, 0);
    test.put(1..=50);
    test.open("a", 4, 50);
    assert_eq!(test.lost_and_expired(), (1, 39), "46; nobody has asked for 40 to 45 yet");
    test.open("b", 10, 50);
    assert_eq!(test.lost_and_expired(), (7, 39));
}

#[test]
fn a_wanted_record_is_not_dropped_for_a_new_one() {
    let mut test = Test::new(4, 10, 100);
    test.put(1..=4);
    test.open("a", 10, 4);
    assert_eq!(test.put(5..=9), 0, "they wait in their ring");
    test.seen.fails = true;
    assert_eq!(test.ram.write(1, &mut test.seen), Err(()));
    test.seen.fails = false;
    assert_eq!(test.ram.write(1, &mut test.seen), Ok(RECORD_BYTES));
    assert_eq!((test.put(5..=9), &test.seen.written[..]), (1, &[1][..]));
    test.ram.end();
    assert_eq!(test.ledger.snapshot().lost_in_writing.records, 4, "2 to 5 are lost");
}

#[test]
fn an_incident_without_records_says_so() {
    let mut test = Test::new(4, 10, 5);
    test.open("a", 10, 20);
    test.ram.look(26);
    test.ram.looked();
    assert_eq!(test.done(), Some(("a".into(), 10, false)));
    test.open("b", 10, 30);
    test.ram.cancel("b");
    test.ram.close();
    assert_eq!(test.done(), None);
}

proptest! {
    // Any incidents and sizes: a record is written if a window wants it and it was there; each
    // record has one fate.
    #[test]
    fn each_record_has_one_fate(
        records in 1u64..40,
        before_ns in 1u64..30,
        after_ns in 1u64..30,
        incidents in prop::collection::btree_set(1u32..200, 0..8),
    ) {
        let mut test = Test::new(records, before_ns, after_ns);
        let mut received = Vec::new();
        for number in 1..=200 {
            // A record without room would wait in its ring. Here it is left out.
            received.extend((test.put(number..=number) > 0).then_some(number));
            if incidents.contains(&number) {
                test.open(&number.to_string(), before_ns, number.into());
            }
            test.write();
        }
        test.ram.close();
        test.write();
        test.ram.end();
        let (lost, expired) = test.lost_and_expired();
        let written = &test.seen.written;
        prop_assert!(written.is_sorted_by(|a, b| a < b));
        prop_assert_eq!(written.len() as u64 + lost + expired, received.len() as u64);
        let is_wanted = |number: u32| incidents.iter().any(|at| {
            let (number, at) = (u64::from(number), u64::from(*at));
            at.saturating_sub(before_ns) <= number && number <= at + after_ns
        });
        let wanted: Vec<u32> =
            received.iter().copied().filter(|number| is_wanted(*number)).collect();
        if lost == 0 && received.len() == 200 {
            prop_assert_eq!(written, &wanted);
        }
        prop_assert!(written.len() as u64 + lost >= wanted.len() as u64);
    }
}
