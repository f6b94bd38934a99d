// SPDX-License-Identifier: MIT OR Apache-2.0
//! blktrace's files and blkparse's text, from samples that `traces/record-in-guest.sh` recorded, and by hand.

use steadyio_trace::event::{Dev, Event, EventKind, Extent, Op, OpKind};
use steadyio_trace::source::{Position, Problem, blkparse, blktrace, ftrace_text};

use crate::samples::{all_events, block_events, bytes, split};

const SDA: Dev = Dev { major: 8, minor: 0 };

fn card(kernel: &str) -> Vec<Event> {
    let file = bytes(&format!("{kernel}-card.blktrace.0"));
    all_events(blktrace::read([("card".to_owned(), file.as_slice())]))
}

fn parse(text: &str) -> (Vec<Event>, Vec<Problem>) {
    split(blkparse::read(text.as_bytes(), "b"))
}

/// The one event of a line, behind `8,0 1 7 0.000000256 77 `.
fn what(line: &str) -> EventKind {
    let (events, problems) = parse(&format!("  8,0    1        7     0.000000256    77 {line}\n"));
    assert_eq!(problems, [], "{line}");
    assert_eq!(events.len(), 1, "{line}");
    events[0].what
}

#[test]
fn blkparse_and_the_files_say_the_same() {
    for kernel in ["6.1", "6.12"] {
        let files = card(kernel);
        let text = bytes(&format!("{kernel}-blkparse.txt"));
        let text = all_events(blkparse::read(text.as_slice(), "b"));
        assert!(files.len() > 150, "{}", files.len());
        assert_eq!(files.len(), text.len());
        let begin_ns = files[0].time_ns;
        for (one, other) in files.iter().zip(&text) {
            assert_eq!((one.cpu, one.pid, one.what), (other.cpu, other.pid, other.what));
            assert_eq!(one.time_ns - begin_ns, other.time_ns);
            if !matches!(one.what, EventKind::Complete { .. } | EventKind::Requeue(_)) {
                assert_eq!(one.comm, other.comm, "{one:?}");
            }
        }
        assert!(files.iter().any(|event| event.comm.to_string() == "a [0] b"));
    }
}

#[test]
fn blktrace_and_ftrace_saw_the_same_block_events() {
    for (kernel, other) in [("6.1", "6.1-report.txt"), ("6.12", "6.12-trace.txt")] {
        let ftrace = all_events(ftrace_text::read(bytes(other).as_slice(), other));
        let without_priority =
            ftrace.iter().map(|event| Event { what: blktrace_knows(event.what), ..*event });
        let ftrace = block_events(&without_priority.collect::<Vec<_>>());
        let blktrace = block_events(&card(kernel));
        // trace-cmd stops a little earlier.
        let last_ns = ftrace.iter().map(|(_, time_ns)| *time_ns).max().expect("events");
        let blktrace: Vec<_> =
            blktrace.into_iter().filter(|event| event.1 <= last_ns + 1000).collect();
        assert!(ftrace.len() > 100, "{}", ftrace.len());
        for (one, other) in blktrace.iter().zip(&ftrace) {
            assert_eq!(one.0, other.0, "{kernel}");
            // A tracer's clock read takes 256 ns of virtual time; ftrace's file has µs.
            assert!(one.1.abs_diff(other.1) <= 2_000, "{one:?} {other:?}");
        }
        assert_eq!(blktrace.len(), ftrace.len());
    }
}

/// The same without what blktrace does not record: priorities, and the sector "none" at the end of a flush.
fn blktrace_knows(what: EventKind) -> EventKind {
    let plain = |extent: Extent| {
        let sector = if extent.op.kind == OpKind::Flush { 0 } else { extent.sector };
        Extent { sector, priority: None, ..extent }
    };
    match what {
        EventKind::Insert(extent) => EventKind::Insert(plain(extent)),
        EventKind::Issue(extent) => EventKind::Issue(plain(extent)),
        EventKind::Requeue(extent) => EventKind::Requeue(plain(extent)),
        EventKind::Complete { extent, error } => {
            EventKind::Complete { extent: plain(extent), error }
        }
        what => what,
    }
}

/// The records of a file whose data are `data` long each, turned into the other byte order.
fn swapped(file: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = file;
    while !rest.is_empty() {
        let mut start = 0;
        for length in [4, 4, 8, 8, 4, 4, 4, 4, 4, 2, 2] {
            out.extend(rest[start..start + length].iter().rev());
            start += length;
        }
        let data = usize::from(u16::from_le_bytes([rest[46], rest[47]]));
        out.extend(&rest[48..48 + data]);
        rest = &rest[48 + data..];
    }
    out
}

#[test]
fn both_byte_orders_are_read() {
    let file = swapped(&bytes("6.12-card.blktrace.0"));
    let big = all_events(blktrace::read([("big".to_owned(), file.as_slice())]));
    assert_eq!(big, card("6.12"));
}

/// A record of `action` with `data` behind it.
fn record(sequence: u32, time_ns: u64, cpu: u32, action: u32, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend((blktrace::MAGIC | blktrace::VERSION).to_le_bytes());
    out.extend(sequence.to_le_bytes());
    out.extend(time_ns.to_le_bytes());
    out.extend(2048_u64.to_le_bytes());
    for word in [4096, action, 77, 8 << 20, cpu] {
        out.extend(u32::to_le_bytes(word));
    }
    out.extend(0xfffb_u16.to_le_bytes());
    out.extend(u16::try_from(data.len()).expect("short").to_le_bytes());
    out.extend(data);
    out
}

fn records(files: &[Vec<u8>]) -> (Vec<Event>, Vec<Problem>) {
    split(blktrace::read(
        files.iter().enumerate().map(|(place, file)| (format!("f.{place}"), file.as_slice())),
    ))
}

const READ: u32 = 1 << 16;
const WRITE: u32 = 1 << 17;
const FLUSH: u32 = 1 << 18;
const NOTIFY: u32 = 1 << 26;

#[test]
fn every_action_becomes_its_event() {
    let op = Op { kind: OpKind::Read, ..Op::default() };
    let extent = Extent { dev: SDA, sector: 2048, sectors: 8, op, priority: None };
    let bio = Extent { sectors: 0, ..extent };
    let split_at = 2050_u64.to_be_bytes();
    let mut remap = Vec::new();
    remap.extend((8_u32 << 20 | 1).to_be_bytes());
    remap.extend((8_u32 << 20).to_be_bytes());
    remap.extend(48_u64.to_be_bytes());
    let from = (Dev { major: 8, minor: 1 }, 48);
    for (action, data, expected) in [
        (1, &[][..], EventKind::BioQueue(extent)),
        (2, &[], EventKind::BackMerge(extent)),
        (3, &[], EventKind::FrontMerge(extent)),
        (4, &[], EventKind::GetRequest(extent)),
        (6, &[], EventKind::Requeue(extent)),
        (7, &[], EventKind::Issue(extent)),
        (8, &[], EventKind::Complete { extent, error: -5 }),
        (9, &[], EventKind::Plug),
        (10, &[0, 0, 0, 0, 0, 0, 0, 3], EventKind::Unplug),
        (11, &[0, 0, 0, 0, 0, 0, 0, 3], EventKind::Unplug),
        (12, &[], EventKind::Insert(extent)),
        (13, &split_at, EventKind::BioSplit { bio, new_sector: 2050 }),
        (15, &remap, EventKind::BioRemap { to: extent, from }),
    ] {
        let (events, problems) = records(&[record(1, 5, 3, action | READ, data)]);
        assert_eq!(problems, []);
        assert_eq!(events.len(), 1, "{action}");
        assert_eq!((events[0].what, events[0].time_ns, events[0].cpu), (expected, 5, 3));
        assert_eq!(events[0].pid, 77);
    }
    // A control group comes before the data.
    let data = [[9; 8], split_at].concat();
    let (events, _) = records(&[record(1, 5, 3, 13 | READ | 1 << 8, &data)]);
    assert_eq!(events[0].what, EventKind::BioSplit { bio, new_sector: 2050 });
}

#[test]
fn operations_are_told_apart_as_far_as_the_file_does() {
    let op = |categories| match records(&[record(1, 5, 0, 1 | categories, &[])]).0[0].what {
        EventKind::BioQueue(extent) => extent.op,
        what => panic!("{what:?}"),
    };
    let kind = |kind| Op { kind, ..Op::default() };
    assert_eq!(op(READ), kind(OpKind::Read));
    assert_eq!(op(WRITE), kind(OpKind::Write));
    assert_eq!(op(WRITE | 1 << 29), kind(OpKind::Discard));
    assert_eq!(op(READ | 1 << 25), kind(OpKind::Other));
    assert_eq!(op(WRITE | FLUSH), Op { preflush: true, ..kind(OpKind::Write) });
    let flags = WRITE | 1 << 19 | 1 << 27 | 1 << 28 | 1 << 31;
    let all = Op { fua: true, sync: true, meta: true, ahead: true, ..kind(OpKind::Write) };
    assert_eq!(op(flags), all);
    let mut flush = record(1, 5, 0, 1 | READ | FLUSH, &[]);
    flush[24..28].fill(0);
    let EventKind::BioQueue(extent) = records(&[flush]).0[0].what else { panic!("a flush") };
    assert_eq!(extent.op, Op { preflush: true, ..kind(OpKind::Flush) });
}

#[test]
fn files_of_several_cpus_are_merged_and_names_known_in_all() {
    let one = [
        record(0, 1, 0, NOTIFY, b"loader\0\0\0\0\0\0\0\0\0\0"),
        record(1, 10, 0, 1 | READ, &[]),
        record(2, 30, 0, 1 | READ, &[]),
    ];
    let other = [record(1, 20, 1, 1 | READ, &[]), record(2, 40, 1, 1 | READ, &[])];
    let (events, problems) = records(&[one.concat(), other.concat()]);
    assert_eq!(problems, []);
    let seen: Vec<_> = events.iter().map(|event| (event.time_ns, event.cpu)).collect();
    assert_eq!(seen, [(10, 0), (20, 1), (30, 0), (40, 1)]);
    assert!(events.iter().all(|event| event.comm.to_string() == "loader"));
}

#[test]
fn notes_and_events_that_nobody_needs_are_counted() {
    let file = [
        record(0, 1, 0, NOTIFY | 1, &[0; 8]),
        record(0, 1, 0, NOTIFY | 2 | 1 << 8, &[0; 12]),
        record(1, 2, 0, 14 | READ, &[]),
        record(2, 3, 0, 1 | READ, &[]),
    ];
    let file = file.concat();
    let mut source = blktrace::read([("f".to_owned(), file.as_slice())]);
    assert_eq!(source.by_ref().count(), 1);
    let skipped: Vec<_> = source.skipped().by_kind().into_iter().collect();
    let expected = [("bounce", 1), ("message", 1), ("timestamp", 1)];
    assert_eq!(skipped, expected.map(|(kind, count)| (kind.to_owned(), count)));
}

#[test]
fn a_gap_in_the_numbering_is_a_loss() {
    let file = [record(7, 10, 2, 1 | READ, &[]), record(10, 20, 2, 1 | READ, &[])].concat();
    let (events, problems) = records(&[file]);
    assert_eq!(problems, []);
    let seen: Vec<_> = events.iter().map(|event| (event.time_ns, event.cpu, event.what)).collect();
    assert_eq!(seen[1], (20, 2, EventKind::Lost { count: 2 }));
    assert_eq!(seen.len(), 3);
}

#[test]
fn a_damaged_record_ends_its_file_only() {
    let good = record(1, 10, 0, 1 | READ, &[]);
    let mut version = record(2, 20, 0, 1 | READ, &[]);
    version[0] = 9;
    let mut magic = record(2, 20, 0, 1 | READ, &[]);
    magic[2] = 0;
    let backwards = record(2, 5, 0, 1 | READ, &[]);
    let action = record(2, 20, 0, 99 | READ, &[]);
    let note = record(2, 20, 0, NOTIFY | 9, &[]);
    let short = record(2, 20, 0, 15 | READ, &[0; 4]);
    let mut odd = record(2, 20, 0, 1 | READ, &[]);
    odd[24] = 1;
    let cut_head = good[..20].to_vec();
    let cut_data = record(2, 20, 0, 13 | READ, &[0; 8])[..50].to_vec();
    for (bad, expected) in [
        (version, "version 9"),
        (magic, "which begins with 0x65617400"),
        (backwards, "goes back in time by 5 ns"),
        (action, "unknown action 99"),
        (note, "unknown note 9"),
        (short, "expected more"),
        (odd, "4097 bytes"),
        (cut_head, "the last record is cut: 20 of 48 bytes"),
        (cut_data, "the last record is cut: 50 of 56 bytes"),
    ] {
        let other = record(1, 30, 1, 1 | READ, &[]);
        let (events, problems) = records(&[[good.clone(), bad].concat(), other]);
        assert_eq!(events.len(), 2, "{expected}");
        assert_eq!(problems.len(), 1, "{expected}");
        assert_eq!((problems[0].file.as_str(), problems[0].place), ("f.0", Position::Byte(48)));
        assert!(problems[0].what.contains(expected), "{}", problems[0].what);
    }
}

#[test]
fn lines_of_blkparse_in_all_their_forms() {
    let op = Op { kind: OpKind::Write, sync: true, ..Op::default() };
    let extent = Extent { dev: SDA, sector: 2048, sectors: 8, op, priority: None };
    assert_eq!(what(" Q  WS 2048 + 8 [dd]"), EventKind::BioQueue(extent));
    assert_eq!(what(" D  WS 2048 + 8 (     512) [dd]"), EventKind::Issue(extent));
    assert_eq!(
        what(" C  WS 2048 + 8 (     512) [65531]"),
        EventKind::Complete { extent, error: -5 }
    );
    assert_eq!(what(" R  WS 2048 + 8 [0]"), EventKind::Requeue(extent));
    let empty = Extent { sector: 0, sectors: 0, op: Op { preflush: true, ..op }, ..extent };
    assert_eq!(what(" Q FWS [dd]"), EventKind::BioQueue(empty));
    let flush = Op { kind: OpKind::Flush, preflush: true, ..Op::default() };
    let flush = Extent { op: flush, ..empty };
    assert_eq!(what(" D  FN [dd]"), EventKind::Issue(flush));
    assert_eq!(what(" C  FN 0 [0]"), EventKind::Complete { extent: flush, error: 0 });
    let other = Op { kind: OpKind::Other, ..Op::default() };
    let command = Extent { op: other, ..empty };
    assert_eq!(what(" D   R 36 (12 00 00 00 24 00 ..) [a] b]"), EventKind::Issue(command));
    assert_eq!(
        what(" C   R (12 00 00 00 24 00 ..) [0]"),
        EventKind::Complete { extent: command, error: 0 }
    );
    let from = (Dev { major: 8, minor: 1 }, 0);
    assert_eq!(what(" A  WS 2048 + 8 <- (8,1) 0"), EventKind::BioRemap { to: extent, from });
    let bio = Extent { sectors: 0, ..extent };
    assert_eq!(what(" X  WS 2048 / 2304 [dd]"), EventKind::BioSplit { bio, new_sector: 2304 });
    assert_eq!(what(" P   N [dd]"), EventKind::Plug);
    assert_eq!(what("UT   N [dd] 1"), EventKind::Unplug);
}

#[test]
fn the_summary_of_blkparse_says_whether_events_are_missing() {
    let text = "  8,0    1        7     0.000000256    77  P   N [dd]\n\
                CPU0 (card):\n Reads Queued:           9,       84KiB\t Writes Queued:\n\n\
                Throughput (R/W): 1500KiB/s / 43000KiB/s\nEvents (card): 209 entries\n\
                Skips: 2 forward (17 -   0.1%)\nInput file card.blktrace.0 added\n";
    let (events, problems) = parse(text);
    assert_eq!(problems, []);
    assert_eq!(events.last().expect("an event").what, EventKind::Lost { count: 17 });
}

#[test]
fn a_line_that_is_understood_in_part_is_no_event() {
    for (line, expected) in [
        ("  8,0    1        7     0.000000256    77  Q  WS 2048 + 8 [dd", "a name and ]"),
        ("  8,0    1        7     0.000000256    77  Q  WS 2048 + x [dd]", "a number of sectors"),
        ("  8,0    1        7     0.000000256    77  Q  ws 2048 + 8 [dd]", "an operation"),
        ("  8,0    1        7     0.000000256    77  Z  WS 2048 + 8 [dd]", "an action"),
        ("  8,0    1        7     0.256    77  Q  WS 2048 + 8 [dd]", "a time as"),
        ("  8,0    1        7     0.000000256    77  X  WS 2048 / 4 [dd]", "cuts it to 32 bits"),
        ("  8:0    1        7     0.000000256    77  Q  WS 2048 + 8 [dd]", "expected `,`"),
        ("8,0 1 7 0.000000256", "but the line ends"),
        ("hello", "MAJOR,MINOR CPU SEQUENCE"),
    ] {
        let (events, problems) = parse(&format!("{line}\n"));
        assert_eq!(events, [], "{line}");
        assert_eq!(problems.len(), 1, "{line}");
        assert!(problems[0].what.contains(expected), "{line}: {}", problems[0].what);
    }
}
