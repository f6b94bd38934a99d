// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a Perfetto file says of a known trace.

use std::collections::{BTreeMap, BTreeSet};

use super::read::{File, Slice};
use super::sample::{self, BEGIN_NS};
use steadyio_trace::event::{Comm, Event, EventKind};
use steadyio_trace::io::Processes;
use steadyio_trace::open_files;
use steadyio_trace::sched::{SchedTask, Switch};

/// As "read 64 KiB 2-9", in us.
fn in_words(slices: &[&Slice]) -> Vec<String> {
    let us = |ns: u64| (ns - BEGIN_NS) / 1_000;
    let text = |s: &&Slice| format!("{} {}-{}", s.name, us(s.begin_ns), us(s.end_ns.unwrap()));
    slices.iter().map(text).collect()
}

#[test]
fn a_request_has_a_slice_in_each_layer_that_it_passes() {
    let file = File::of(&sample::trace());
    let cases: [(&str, &[&str]); 3] = [
        (
            "0",
            &[
                "submission (VFS): read 64 KiB 0-2",
                "block layer: read 64 KiB 2-9",
                "driver: read 64 KiB 9-12",
                "device: read 64 KiB 12-92",
                "completion: read 64 KiB 92-99",
            ],
        ),
        // Between its pieces it is in the block layer again.
        (
            "4",
            &[
                "block layer: write 512 KiB 60-70",
                "driver: write 512 KiB 70-75",
                "device: write 512 KiB 1/3 75-148",
                "completion: write 512 KiB 148-150",
                "block layer: write 512 KiB 150-180",
                "device: write 512 KiB 2/3 180-200",
                "block layer: write 512 KiB 200-250",
                "device: write 512 KiB 3/3 250-400",
            ],
        ),
        // The second of a call is submitted after the first.
        (
            "6",
            &[
                "submission (VFS): flush 502-561",
                "block layer: flush 561-562",
                "device: flush 562-700",
                "completion: flush 700-705",
            ],
        ),
    ];
    for (request, expected) in cases {
        let is_own = |slice: &&Slice| slice.arguments.get("request").is_some_and(|r| r == request);
        let own: Vec<&Slice> = file.slices.iter().filter(is_own).collect();
        let layers = own.iter().map(|slice| &file.tracks[&slice.track].name);
        let found: Vec<String> =
            layers.zip(in_words(&own)).map(|(layer, slice)| format!("{layer}: {slice}")).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn what_a_request_waits_for_is_within_its_block_layer_slice() {
    let file = File::of(&sample::trace());
    let inner: Vec<&Slice> = file.slices.iter().filter(|s| s.depth == 1).collect();
    let waits = in_words(&inner);
    for wait in ["waiting for a tag 2-3", "plugged 3-4", "in the scheduler 4-9"] {
        assert!(waits.contains(&wait.to_string()), "{waits:?}");
    }
}

#[test]
fn arguments_say_what_is_known_and_not_more() {
    let file = File::of(&sample::trace());
    let of = |request: &str| {
        let slice =
            file.slices.iter().find(|s| s.arguments.get("request").is_some_and(|r| r == request));
        let all = slice.unwrap().arguments.iter();
        all.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(
        of("1"),
        "bytes=4096, comm=reader, error=-5, inode=12, op=read sync readahead, origin=readahead, pid=1201, \
         request=1, sector=64"
    );
    assert_eq!(
        of("4"),
        "bytes=524288, comm=kworker/u8:1, inode=77, merged=1, op=write, origin=writeback, pid=31, pieces=3, \
         priority=be/4, request=4, requeues=1, sector=8192"
    );
}

#[test]
fn calls_of_a_thread_that_overlap_have_lanes_of_their_own() {
    let file = File::of(&sample::trace());
    let ring = file.on("reader 1202");
    let names: Vec<&str> = ring.iter().map(|slice| slice.name.as_str()).collect();
    assert_eq!(names, ["io_uring_enter 4 KiB", "io_uring_enter 4 KiB"]);
    assert_ne!(ring[0].track, ring[1].track);
    let sync = file.on("reader 1201");
    assert_eq!(sync[0].track, sync[1].track);
}

#[test]
fn threads_are_in_the_process_table_and_cpus_show_what_ran() {
    let mut trace = sample::trace();
    trace.processes = Processes::new([(1202, 1201)].into(), BTreeMap::new());
    let task = |pid, comm: &[u8]| SchedTask { pid, comm: Comm::new(comm), prio: 120 };
    let (idle, reader) = (task(0, b"swapper/1"), task(1202, b"reader"));
    for (us, prev, next) in [(10, idle, reader), (25, reader, idle), (40, reader, idle)] {
        let (time_ns, what) = (BEGIN_NS + us * 1_000, Switch { prev, runnable: false, next });
        let (pid, comm, what) = (prev.pid, prev.comm, EventKind::Switch(what));
        trace.sched.take(Event { time_ns, cpu: 1, pid, comm, what });
    }
    let file = File::of(&trace);
    let threads: Vec<_> = file.tracks.values().filter_map(|track| track.thread).collect();
    assert_eq!(threads, [(1201, 1201), (1201, 1202)]);
    // The last switch is from a thread that was not seen to get this CPU.
    assert_eq!(in_words(&file.on("CPU 1")), ["reader 1202 10-25"]);
}

#[test]
fn a_call_and_a_request_for_an_inode_have_the_path_of_their_file() {
    let mut trace = sample::trace();
    let file = |path: &str| open_files::File { path: path.into(), ..Default::default() };
    trace.files = vec![file("/data"), file("/log")];
    trace.ios[0].file = Some(0);
    trace.requests[4].file = Some(1);
    let file = File::of(&trace);
    let having = |path: &str| {
        let has = |slice: &&Slice| slice.arguments.get("path").is_some_and(|own| own == path);
        file.slices.iter().filter(has).collect::<Vec<_>>()
    };
    assert_eq!(having("/data").len(), 1);
    assert!(!having("/log").is_empty());
    assert!(having("/log").iter().all(|slice| slice.arguments["request"] == "4"));
}

#[test]
fn a_flow_leads_from_the_call_through_each_layer_of_its_request() {
    let file = File::of(&sample::trace());
    let calls = file.on("reader 1201");
    assert_eq!(calls[0].flows, [1]);
    assert_eq!(calls[1].flows, [6, 7]);
    let followed: Vec<&Slice> =
        file.slices.iter().filter(|s| s.flows.contains(&1) || s.last_of.contains(&1)).collect();
    assert_eq!(followed.len(), 6);
    assert_eq!(followed.last().unwrap().last_of, [1]);
}

#[test]
fn counters_show_requests_queued_or_in_flight_and_those_in_flight() {
    let file = File::of(&sample::trace());
    let of_card = |name: &str| {
        let card = |group: &Option<String>| group.as_deref() == Some("device 179:0");
        let mut tracks = file.tracks.values();
        let track = tracks.find(|track| track.name == name && card(&track.group)).unwrap();
        let us = |(ns, count): &(u64, i64)| ((ns - BEGIN_NS) / 1_000, *count);
        track.counts.iter().map(us).collect::<Vec<_>>()
    };
    let queued = of_card("requests queued or in flight");
    assert_eq!(queued[..4], [(2, 1), (30, 2), (33, 3), (60, 4)]);
    let in_flight = of_card("requests in flight");
    assert_eq!(in_flight[..5], [(12, 1), (31, 2), (34, 3), (75, 4), (92, 3)]);
}

#[test]
fn devices_are_called_by_their_names_where_those_are_known() {
    let file = File::named(&sample::trace(), &sample::names());
    let groups = file.tracks.values().filter_map(|track| track.group.as_deref());
    let devices: BTreeSet<&str> = groups.filter(|group| group.starts_with("device ")).collect();
    assert_eq!(devices, BTreeSet::from(["device mmcblk0", "device 8:16"]));
}

#[test]
fn an_empty_trace_is_a_file_without_tracks() {
    let file = File::of(&Default::default());
    assert!(file.tracks.is_empty() && file.slices.is_empty());
}
