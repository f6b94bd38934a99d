// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages of the ring buffer that are made as the kernel makes them, and pages that are not.

use std::collections::HashMap;

use proptest::prelude::*;
use steadyio_trace::event::EventKind;
use steadyio_trace::source::decode::Decoder;
use steadyio_trace::source::format::{Format, PageFormat};
use steadyio_trace::source::pages::{CpuPages, Merged};
use steadyio_trace::source::ring::{BadPage, Entry, entries};

use super::format::{format_text, wanted_named};

pub const FORMAT: PageFormat = PageFormat { commit_size: 8, data_offset: 16, page_size: 4096 };
const MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;

fn entry_head(kind: u32, delta_ns: u64) -> [u8; 4] {
    assert!(kind < 32 && delta_ns < 1 << 27);
    (kind | u32::try_from(delta_ns).unwrap() << 5).to_le_bytes()
}

/// The words of one entry with all 59 bits of a time.
fn long_time(kind: u32, ns: u64) -> Vec<u8> {
    let high = u32::try_from(ns >> 27).unwrap();
    [entry_head(kind, ns & ((1 << 27) - 1)), high.to_le_bytes()].concat()
}

/// A record as the kernel writes it: small ones have their length in words in the head.
pub fn record(delta_ns: u64, data: &[u8]) -> Vec<u8> {
    let padded = data.len().next_multiple_of(4);
    let mut bytes = if padded <= 28 * 4 {
        entry_head(u32::try_from(padded / 4).unwrap(), delta_ns).to_vec()
    } else {
        let length = u32::try_from(padded + 4).unwrap();
        [entry_head(0, delta_ns), length.to_le_bytes()].concat()
    };
    bytes.extend(data);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

pub fn page(begin_ns: u64, flags: u64, data: &[u8]) -> Vec<u8> {
    let mut page = begin_ns.to_le_bytes().to_vec();
    page.extend((flags | data.len() as u64).to_le_bytes());
    page.extend(data);
    page
}

fn read(page: &[u8]) -> Result<Vec<Entry<'_>>, BadPage> {
    entries(page, &FORMAT)?.collect()
}

/// An entry of a page.
#[derive(Clone, Debug)]
enum Put {
    Record(u64, Vec<u8>),
    Extend(u64),
    Stamp(u64),
    TakenBack(u64, usize),
}

fn any_put() -> impl Strategy<Value = Put> {
    let data = proptest::collection::vec(any::<u8>(), 1..200);
    prop_oneof![
        4 => (0u64..1 << 27, data).prop_map(|(delta_ns, data)| Put::Record(delta_ns, data)),
        1 => (0u64..1 << 40).prop_map(Put::Extend),
        1 => (0u64..1 << 40).prop_map(Put::Stamp),
        1 => (1u64..1 << 27, 1usize..40).prop_map(|(delta_ns, words)| Put::TakenBack(delta_ns, words)),
    ]
}

proptest! {
    #[test]
    fn records_come_out_with_their_times(begin_ns in 0u64..1 << 50, puts in proptest::collection::vec(any_put(), 0..12)) {
        let (mut data, mut time_ns, mut expected) = (Vec::new(), begin_ns, Vec::new());
        for put in &puts {
            match put {
                Put::Record(delta_ns, bytes) => {
                    time_ns += delta_ns;
                    data.extend(record(*delta_ns, bytes));
                    expected.push((time_ns, bytes.clone()));
                }
                Put::Extend(delta_ns) => {
                    time_ns += delta_ns;
                    data.extend(long_time(30, *delta_ns));
                }
                Put::Stamp(later_ns) => {
                    time_ns += later_ns;
                    data.extend(long_time(31, time_ns));
                }
                Put::TakenBack(delta_ns, words) => {
                    time_ns += delta_ns;
                    data.extend(entry_head(29, *delta_ns));
                    data.extend(u32::try_from(words * 4).unwrap().to_le_bytes());
                    data.resize(data.len() + (words - 1) * 4, 0xee);
                }
            }
        }
        data.extend(entry_head(29, 0));
        data.extend([0xee; 8]);
        let page = page(begin_ns, 0, &data);
        let found = read(&page).unwrap();
        prop_assert_eq!(found.len(), expected.len());
        for (found, (time_ns, bytes)) in found.iter().zip(&expected) {
            let Entry::Record { time_ns: found_ns, offset, data } = *found else { panic!("{found:?}") };
            prop_assert_eq!(found_ns, *time_ns);
            prop_assert_eq!(&data[..bytes.len()], &bytes[..]);
            prop_assert_eq!(&page[offset..offset + data.len()], data);
        }
    }

    #[test]
    fn garbage_gives_an_error_inside_the_page(bytes: Vec<u8>) {
        if let Err(bad) = read(&bytes) {
            prop_assert!(bad.offset <= bytes.len(), "{bad:?}");
        }
    }

    #[test]
    fn garbage_behind_a_good_head_gives_an_error_inside_the_page(
        begin_ns: u64, flags in 0u64..4, data in proptest::collection::vec(any::<u8>(), 0..300)
    ) {
        let bytes = page(begin_ns, flags << 30, &data);
        if let Err(bad) = read(&bytes) {
            prop_assert!(bad.offset <= bytes.len(), "{bad:?}");
        }
    }
}

#[test]
fn lost_records_are_counted_if_the_kernel_had_room_to_say_how_many() {
    let mut bytes = page(7, MISSED | MISSED_STORED, &record(1, b"abcd"));
    bytes.extend(12345u64.to_le_bytes());
    assert_eq!(read(&bytes).unwrap()[0], Entry::Lost { time_ns: 7, count: 12345 });
    let bytes = page(7, MISSED, &record(1, b"abcd"));
    assert_eq!(read(&bytes).unwrap()[0], Entry::Lost { time_ns: 7, count: 0 });
}

#[test]
fn the_flags_of_a_32_bit_kernel_are_in_its_short_commit_word() {
    let format = PageFormat { commit_size: 4, data_offset: 12, page_size: 4096 };
    let data = record(1, b"abcd");
    let commit =
        u32::try_from(MISSED | MISSED_STORED).unwrap() | u32::try_from(data.len()).unwrap();
    let bytes =
        [&9u64.to_le_bytes()[..], &commit.to_le_bytes(), &data, &3u32.to_le_bytes()].concat();
    let found: Vec<Entry> = entries(&bytes, &format).unwrap().map(Result::unwrap).collect();
    assert_eq!(found[0], Entry::Lost { time_ns: 9, count: 3 });
    assert_eq!(found[1], Entry::Record { time_ns: 10, offset: 16, data: b"abcd" });
}

#[test]
fn a_stamp_takes_the_top_bits_that_it_lacks_from_the_time_before_it() {
    let begin_ns = (3 << 59) + ((1 << 59) - 10);
    // 20 ns later the low 59 bits have wrapped.
    let bytes = page(begin_ns, 0, &[long_time(31, 10), record(0, b"abcd")].concat());
    let Entry::Record { time_ns, .. } = read(&bytes).unwrap()[0] else { panic!() };
    assert_eq!(time_ns, begin_ns + 20);
}

#[test]
fn a_record_that_passes_the_end_of_the_data_is_an_error_at_its_head() {
    let mut data = record(1, b"abcd");
    data.extend(entry_head(2, 1));
    data.extend(b"abcd");
    let bytes = page(0, 0, &data);
    let mut entries = entries(&bytes, &FORMAT).unwrap();
    assert!(entries.next().unwrap().is_ok());
    assert_eq!(entries.next().unwrap().unwrap_err().offset, 16 + 8);
    assert!(entries.next().is_none());
}

#[test]
fn more_data_than_the_page_has_is_an_error() {
    let mut bytes = page(0, 0, &[0; 8]);
    bytes[8] = 9;
    assert_eq!(read(&bytes).unwrap_err().offset, 8);
}

#[test]
fn a_page_that_cannot_be_read_is_a_loss() {
    let mut decoder = Decoder::new(FORMAT);
    let format = Format::parse(&format_text("contention_end", 1, "")).unwrap();
    decoder.add(wanted_named("contention_end"), &format).unwrap();
    let good = |ns| Ok(page(ns, 0, &record(0, &[1, 0, 0, 0, 7, 0, 0, 0])));
    let bad = || Ok(page(20, 0x800, &[]));
    let pages = Box::new([good(10), bad(), good(30), bad()].into_iter());
    let cpu = CpuPages { cpu: 0, file: "t".to_owned(), pages };
    let found = Merged::new(vec![cpu], &decoder, HashMap::new());
    let found: Vec<_> = found.map(|item| item.ok().map(|of| (of.time_ns, of.what))).collect();
    let lost = |since_ns| EventKind::Lost { count: 0, since_ns: Some(since_ns) };
    let end = EventKind::LockEnd;
    let expected =
        [Some((10, end)), None, Some((30, lost(10))), Some((30, end)), None, Some((30, lost(30)))];
    assert_eq!(found, expected);
}
