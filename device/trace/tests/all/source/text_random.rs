// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any event survives being printed and read; and damage to a file costs no more than what is damaged.
//!
//! `STEADY_TRACE_CASES` says how many cases each property gets; `make soak` gives many.

use std::sync::OnceLock;

use proptest::prelude::*;
use proptest::sample::select;
use steadyio_trace::calls::CALLS;
use steadyio_trace::event::{
    Call, Class, Comm, Command, Dev, Driver, Event, EventKind, Extent, Op, OpKind, Priority,
};
use steadyio_trace::sched::{SchedTask, Switch, Waking};
use steadyio_trace::source::detect::Format;
use steadyio_trace::source::text::Text;
use steadyio_trace::source::{Position, Problem};

use crate::cases::cases;
use crate::samples::render::{self, Form};
use crate::samples::{bytes, split};

fn any_op() -> impl Strategy<Value = Op> {
    let kinds = vec![OpKind::Read, OpKind::Write, OpKind::Discard, OpKind::Flush];
    (select(kinds), any::<[bool; 5]>()).prop_map(|(kind, [preflush, fua, sync, meta, ahead])| {
        match kind {
            OpKind::Flush => Op { kind, preflush: true, ..Op::default() },
            _ => Op { kind, preflush, fua, sync, meta, ahead },
        }
    })
}

fn any_dev() -> impl Strategy<Value = Dev> {
    (0..4096_u32, 0..1_u32 << 20).prop_map(|(major, minor)| Dev { major, minor })
}

fn bio() -> impl Strategy<Value = Extent> {
    (any_dev(), any::<u64>(), 1..u32::MAX / 512, any_op()).prop_map(|(dev, sector, sectors, op)| {
        match op.kind {
            OpKind::Flush => Extent { dev, sector: 0, sectors: 0, op, priority: None },
            _ => Extent { dev, sector, sectors, op, priority: None },
        }
    })
}

fn request() -> impl Strategy<Value = Extent> {
    let classes = select(vec![Class::None, Class::Rt, Class::Be, Class::Idle]);
    let priority = (classes, 0..8_u8).prop_map(|(class, level)| Priority { class, level });
    (bio(), proptest::option::of(priority)).prop_map(|(bio, priority)| Extent { priority, ..bio })
}

fn call() -> impl Strategy<Value = EventKind> {
    let enter = (select(CALLS), any::<i32>()).prop_map(|(events, fd)| EventKind::CallEnter {
        call: events.call,
        fd: events.fd.map(|_| fd),
    });
    let exit = (select(CALLS), any::<i64>())
        .prop_map(|(events, result)| EventKind::CallExit { call: events.call, result });
    prop_oneof![enter, exit]
}

fn command() -> impl Strategy<Value = EventKind> {
    let mmc = |key, sector, bytes| {
        let (driver, opcode) = (Driver::Mmc, Some(18));
        Command { driver, key, sector, bytes: Some(bytes), opcode }
    };
    let nvme = |(controller, queue, id): (u16, u16, u16), opcode| {
        let key = u64::from(controller) << 32 | u64::from(queue) << 16 | u64::from(id);
        Command { driver: Driver::Nvme, key, sector: None, bytes: None, opcode }
    };
    prop_oneof![
        (any::<u64>(), any::<u32>(), 1..1000_u32).prop_map(move |(key, sector, blocks)| {
            EventKind::HardwareStart(mmc(key, Some(sector.into()), blocks * 512))
        }),
        (any::<u64>(), any::<u32>())
            .prop_map(move |(key, bytes)| EventKind::HardwareDone(mmc(key, None, bytes))),
        (any::<(u16, u16, u16)>(), 0..3_u8)
            .prop_map(move |(key, opcode)| EventKind::HardwareStart(nvme(key, Some(opcode)))),
        any::<(u16, u16, u16)>().prop_map(move |key| EventKind::HardwareDone(nvme(key, None))),
    ]
}

fn block() -> impl Strategy<Value = EventKind> {
    let split = (bio(), any::<u64>()).prop_map(|(bio, new_sector)| {
        let bio = Extent { sectors: 0, ..bio };
        EventKind::BioSplit { bio, new_sector }
    });
    prop_oneof![
        bio().prop_map(EventKind::BioQueue),
        bio().prop_map(EventKind::GetRequest),
        bio().prop_map(EventKind::BackMerge),
        bio().prop_map(EventKind::FrontMerge),
        (bio(), any_dev(), any::<u64>())
            .prop_map(|(to, dev, sector)| EventKind::BioRemap { to, from: (dev, sector) }),
        split,
        request().prop_map(EventKind::RequestMerge),
        request().prop_map(EventKind::Insert),
        request().prop_map(EventKind::Issue),
        request().prop_map(EventKind::Requeue),
        (request(), -4095..=0).prop_map(|(extent, error)| EventKind::Complete { extent, error }),
    ]
}

fn elsewhere() -> impl Strategy<Value = EventKind> {
    prop_oneof![
        Just(EventKind::Interrupt),
        any::<(u64, bool)>().prop_map(|(request, sq_thread)| {
            let operation = Some(Call::Read);
            EventKind::UringSubmit { request, sq_thread, operation }
        }),
        any::<(u64, i32)>()
            .prop_map(|(request, result)| EventKind::UringComplete { request, result }),
        any::<u64>().prop_map(|request| EventKind::UringQueueWork { request }),
        any::<(u64, u64)>().prop_map(|(request, after)| EventKind::UringLink { request, after }),
        any::<u64>().prop_map(|request| EventKind::UringFileGet { request }),
        any::<u64>().prop_map(|inode| EventKind::WritebackStart { inode }),
        any::<u64>().prop_map(|inode| EventKind::WritebackEnd { inode }),
        (any_dev(), any::<u64>()).prop_map(|(dev, inode)| EventKind::PageCacheAdd { dev, inode }),
        (any_dev(), any::<u64>(), 0..8_u8, any::<u64>())
            .prop_map(|(dev, sector, level, ns)| EventKind::K2Late { dev, sector, level, ns }),
        (any_dev(), any::<u32>())
            .prop_map(|(dev, transaction)| EventKind::JournalCommitStart { dev, transaction }),
        (any_dev(), any::<u32>())
            .prop_map(|(dev, transaction)| EventKind::JournalCommitEnd { dev, transaction }),
        any::<u32>().prop_map(|child| EventKind::Fork { child, same_process: false }),
    ]
}

/// Names have no bracket with a number in it: what stands behind such a name is a problem, which another test shows.
const COMM: &str = "[a-zA-Z_/.-][a-zA-Z0-9_/:.() -]{0,13}[a-zA-Z0-9_/:.]";

fn sched() -> impl Strategy<Value = EventKind> {
    let task = || {
        let task = |(comm, pid, prio): (String, u32, i32)| SchedTask {
            pid,
            comm: Comm::new(comm.as_bytes()),
            prio,
        };
        (COMM, any::<u32>(), -1..140).prop_map(task)
    };
    prop_oneof![
        (task(), any::<bool>(), task())
            .prop_map(|(prev, runnable, next)| EventKind::Switch(Switch { prev, runnable, next })),
        task().prop_map(|woken| EventKind::Waking(Waking {
            woken,
            context: None,
            completed_ns: None
        })),
        (0..200_u64).prop_map(|ms| EventKind::DirtyPause { pause_ns: ms * 1_000_000 }),
    ]
}

/// An event of `what`, at a whole µs.
fn event(what: impl Strategy<Value = EventKind>) -> impl Strategy<Value = Event> {
    (COMM, any::<u32>(), 0..4096_u32, 0..1_u64 << 40, what).prop_map(
        |(comm, pid, cpu, time_us, what)| Event {
            time_ns: time_us * 1000,
            cpu,
            pid,
            comm: Comm::new(comm.as_bytes()),
            what,
        },
    )
}

fn any_event() -> impl Strategy<Value = Event> {
    event(prop_oneof![4 => block(), 2 => call(), 1 => command(), 2 => elsewhere(), 1 => sched()])
}

fn read(format: Format, file: &[u8]) -> (Vec<Event>, Vec<Problem>) {
    split(Text::new(format, file, "f"))
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn every_event_survives_being_printed_and_read(event in any_event()) {
        for (form, format) in [
            (Form::Ftrace, Format::Ftrace),
            (Form::TraceCmd, Format::Ftrace),
            (Form::Perf, Format::Perf),
        ] {
            let line = render::line(form, &event);
            let (events, problems) = read(format, line.as_bytes());
            prop_assert_eq!(&problems, &[], "{}", line);
            prop_assert_eq!(&events, &[event], "{}", line);
        }
    }

    /// As a second writer cuts it. Those that end in a number cannot be told from whole ones.
    #[test]
    fn a_cut_line_of_the_block_layer_is_no_event(event in event(block()), cut: prop::sample::Index) {
        prop_assume!(!matches!(event.what, EventKind::BioRemap { .. }));
        for (form, format) in [(Form::Ftrace, Format::Ftrace), (Form::Perf, Format::Perf)] {
            let line = render::line(form, &event);
            let text = line.trim_end();
            let file = format!("{}\n", &text[..cut.index(text.len())]);
            prop_assert_eq!(read(format, file.as_bytes()).0, &[], "{}", file);
        }
    }
}

/// The samples that are damaged.
const SAMPLES: [(&str, Format); 5] = [
    ("host-trace.txt", Format::Ftrace),
    ("host-report-t.txt", Format::Ftrace),
    ("host-perf-fields-ns.txt", Format::Perf),
    ("6.1-report.txt", Format::Ftrace),
    ("6.12-trace.txt", Format::Ftrace),
];

fn samples() -> &'static Vec<(Format, Vec<Vec<u8>>)> {
    static SAMPLES_READ: OnceLock<Vec<(Format, Vec<Vec<u8>>)>> = OnceLock::new();
    SAMPLES_READ.get_or_init(|| {
        let lines = |name| bytes(name).split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        SAMPLES
            .iter()
            .map(|(name, format)| {
                let mut lines: Vec<Vec<u8>> = lines(name);
                lines.pop();
                (*format, lines)
            })
            .collect()
    })
}

/// What happens to some bytes.
#[derive(Clone, Debug)]
enum Damage {
    Flip(prop::sample::Index, u8),
    Cut(prop::sample::Index, usize),
    Insert(prop::sample::Index, Vec<u8>),
}

fn damage() -> impl Strategy<Value = Damage> {
    use prop::sample::Index;
    prop_oneof![
        (any::<Index>(), 0..8_u8).prop_map(|(place, bit)| Damage::Flip(place, bit)),
        (any::<Index>(), 1..60_usize).prop_map(|(place, length)| Damage::Cut(place, length)),
        (any::<Index>(), prop::collection::vec(any::<u8>(), 1..20))
            .prop_map(|(place, bytes)| Damage::Insert(place, bytes)),
    ]
}

fn damaged(bytes: &[u8], damages: &[Damage]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for damage in damages {
        match damage {
            _ if out.is_empty() => {}
            Damage::Flip(place, bit) => {
                let place = place.index(out.len());
                out[place] ^= 1 << bit;
            }
            Damage::Cut(place, length) => {
                let start = place.index(out.len());
                let end = (start + length).min(out.len());
                out.drain(start..end);
            }
            Damage::Insert(place, bytes) => {
                let place = place.index(out.len());
                out.splice(place..place, bytes.iter().copied());
            }
        }
    }
    out
}

fn joined(lines: &[Vec<u8>]) -> Vec<u8> {
    lines.iter().flat_map(|line| [line, &b"\n"[..]].concat()).collect()
}

/// Whatever the file, these hold.
fn check_sound(items: &(Vec<Event>, Vec<Problem>), file: &[u8]) {
    let (events, problems) = items;
    assert!(events.is_sorted_by_key(|event| event.time_ns), "in the order of time");
    let lines = file.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
    assert!(problems.is_sorted_by_key(|problem| format!("{:20?}", line_of(problem))));
    for problem in problems {
        assert_eq!(problem.file, "f");
        assert!(!problem.what.is_empty() && problem.what.len() < 600, "{problem}");
        assert!(problem.place != Position::Whole || file.is_empty(), "{problem}");
        let line = line_of(problem);
        assert!((1..=lines).contains(&line), "{problem}: the file has {lines} lines");
    }
}

fn line_of(problem: &Problem) -> u64 {
    match problem.place {
        Position::Line(line) => line,
        Position::Whole => 1,
        place => panic!("a text has lines: {place:?}"),
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn one_damaged_line_costs_no_other(
        sample in 0..SAMPLES.len(),
        start: prop::sample::Index,
        line in 0..40_usize,
        damages in prop::collection::vec(damage(), 1..4),
    ) {
        let (format, all) = &samples()[sample];
        let start = start.index(all.len() - 40);
        let mut lines = all[start..start + 40].to_vec();
        let mut without = lines.clone();
        without.remove(line);
        let (expected, none) = read(*format, &joined(&without));
        prop_assert_eq!(none, &[]);
        lines[line] = damaged(&lines[line], &damages);
        // A newline more makes two lines of it.
        lines[line].iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b'?');
        let file = joined(&lines);
        let found = read(*format, &file);
        check_sound(&found, &file);
        let (mut events, problems) = found;
        prop_assert!(problems.iter().all(|problem| line_of(problem) == line as u64 + 1));
        if problems.iter().any(|problem| problem.what.contains("record with the trac")) {
            return Ok(());
        }
        for event in &expected {
            let place = events.iter().position(|found| found == event);
            prop_assert!(place.is_some(), "{:?} is missing", event);
            events.remove(place.expect("there"));
        }
        prop_assert!(events.len() <= 1, "{:?}", events);
        prop_assert!(events.is_empty() || problems.is_empty(), "an event and a problem of one line");
    }

    #[test]
    fn no_damage_makes_a_text_unreadable(
        sample in 0..SAMPLES.len(),
        start: prop::sample::Index,
        damages in prop::collection::vec(damage(), 1..30),
        as_format in select(vec![Format::Ftrace, Format::Perf]),
    ) {
        let (format, all) = &samples()[sample];
        let start = start.index(all.len() - 60);
        let file = damaged(&joined(&all[start..start + 60]), &damages);
        check_sound(&read(*format, &file), &file);
        check_sound(&read(as_format, &file), &file);
    }

    #[test]
    fn no_bytes_make_a_text_unreadable(file in prop::collection::vec(any::<u8>(), 0..2000)) {
        for format in [Format::Ftrace, Format::Perf] {
            check_sound(&read(format, &file), &file);
        }
        let _ = steadyio_trace::source::detect::format(&file);
    }
}
