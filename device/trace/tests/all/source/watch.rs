// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests that are reported while tracing goes on. Pages of different CPUs are not read in the
//! order of time, so the end of a request may be seen before its beginning.

use std::io::Write;
use std::time::Duration;

use steadyio_trace::event::Class;
use steadyio_trace::source::capture::cpu_data::{CpuData, in_memory};
use steadyio_trace::source::capture::watch::Watch;
use steadyio_trace::source::capture::{Options, Trigger};
use steadyio_trace::source::decode::Decoder;
use steadyio_trace::source::format::Format;

use super::format::{format_text, put, wanted_named};
use super::pages::{FORMAT, page, record};

const FIELDS: &str = "\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;
\tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;
\tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;
\tfield:unsigned short ioprio;\toffset:28;\tsize:2;\tsigned:0;
\tfield:char rwbs[8];\toffset:32;\tsize:8;\tsigned:1;
\tfield:int error;\toffset:40;\tsize:4;\tsigned:1;
";
const BEGIN: (u16, &str) = (1, "block_rq_issue");
const END: (u16, &str) = (2, "block_rq_complete");
const MERGED: (u16, &str) = (3, "block_rq_merge");
/// A request behind the place of the others, and a bio at that place that is put before it.
const BEHIND: (u16, &str) = (4, "block_getrq");
const FRONT: (u16, &str) = (5, "block_bio_frontmerge");
/// A page before which events are missing.
const LOST: (u16, &str) = (0, "");

/// An event of the only request, at a time in ns.
struct Seen((u16, &'static str), u64);

/// The buffer of a CPU that has this event only. Only its end shows that the request is real-time.
fn on_a_cpu(Seen(event, time_ns): &Seen) -> CpuData {
    let mut data = [0; 44];
    put(&mut data, 0, &event.0.to_le_bytes());
    put(&mut data, 24, &8u32.to_le_bytes());
    put(&mut data, 32, b"R");
    if *event == BEHIND {
        put(&mut data, 16, &8u64.to_le_bytes());
    }
    if *event == END {
        put(&mut data, 28, &(1u16 << 13).to_le_bytes());
    }
    let mut file = in_memory().unwrap();
    let lost = page(*time_ns, 1 << 31, &[]);
    let seen = page(*time_ns, 0, &record(0, &data));
    file.write_all(if *event == LOST { &lost } else { &seen }).unwrap();
    CpuData { cpu: 0, of_threads: false, older: None, file, in_folder: false }
}

/// The reported duration of a real-time request, if its events are read in this order.
fn took_ns(seen: &[Seen]) -> Option<u64> {
    let mut decoder = Decoder::new(FORMAT);
    for (id, name) in [BEGIN, END, MERGED, BEHIND, FRONT] {
        let format = Format::parse(&format_text(name, id, FIELDS)).unwrap();
        decoder.add(wanted_named(name), &format).unwrap();
    }
    let trigger = Some(Trigger::Above(Duration::ZERO, Some(Class::Rt)));
    let mut watch = Watch::new(decoder, &Options { trigger, ..Options::default() });
    let buffers: Vec<CpuData> = seen.iter().map(on_a_cpu).collect();
    watch.look(buffers.iter()).map(|slow| slow.ns)
}

#[test]
fn a_beginning_and_an_end_are_of_the_same_whichever_is_seen_first() {
    assert_eq!(took_ns(&[Seen(BEGIN, 100), Seen(END, 500)]), Some(400));
    assert_eq!(took_ns(&[Seen(END, 500), Seen(BEGIN, 100)]), Some(400));
    assert_eq!(took_ns(&[Seen(END, 500)]), None);
    // With the first beginning that is seen.
    assert_eq!(took_ns(&[Seen(BEGIN, 600), Seen(BEGIN, 640), Seen(END, 650)]), Some(50));
    // An old end is not that of a later beginning.
    assert_eq!(took_ns(&[Seen(END, 10), Seen(BEGIN, 20)]), None);
    assert_eq!(took_ns(&[Seen(END, 10), Seen(BEGIN, 20), Seen(END, 25)]), Some(5));
}

#[test]
fn a_beginning_that_has_no_end_of_its_own_is_forgotten() {
    for without_end in [MERGED, LOST] {
        let seen = [Seen(BEGIN, 100), Seen(without_end, 150), Seen(BEGIN, 900), Seen(END, 940)];
        assert_eq!(took_ns(&seen), Some(40), "{without_end:?}");
    }
}

#[test]
fn a_request_with_a_bio_put_before_it_keeps_its_beginning() {
    assert_eq!(took_ns(&[Seen(BEHIND, 100), Seen(FRONT, 150), Seen(END, 500)]), Some(400));
}
