// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which file a call is about: what looks at /proc showed, as long as no event may have changed it.

use steadyio_trace::event::{Call, EventKind};
use steadyio_trace::follow::{Follower, Options};
use steadyio_trace::io::Trace;
use steadyio_trace::open_files::{File, OpenFiles, Seen};

use crate::events::{DISK, Script, extent};

const LOOKS: [(u64, u64); 2] = [(50, 60), (150, 160)];

/// Descriptor 3 of process 1 in these looks.
fn seen(path: &str, inode: u64, looks: (usize, usize)) -> Seen {
    let file = File { path: path.into(), device: DISK.to_string(), inode };
    Seen { process: 1, fd: 3, looks, file }
}

fn looks(files: &[Seen]) -> OpenFiles {
    OpenFiles { looks: LOOKS.to_vec(), files: files.to_vec() }
}

fn follow(script: &Script, open_files: OpenFiles) -> Trace {
    let mut follower = Follower::new(Options { open_files, ..Options::default() });
    script.events.iter().for_each(|event| follower.take(event));
    follower.finish()
}

/// The paths of all calls that are shown, in the order of their ends; "" without one.
fn paths(script: &Script, open_files: OpenFiles) -> Vec<String> {
    let trace = follow(script, open_files);
    let calls = trace.calls_without_request.iter();
    calls.map(|call| trace.path(call.file).unwrap_or_default().to_string()).collect()
}

/// A read of descriptor 3 by process 1 that ends 5 ns later.
fn read(script: &mut Script, at_ns: u64) {
    script.by(1).at(at_ns).enter(Call::Read).at(at_ns + 5).exit(Call::Read, 1);
}

/// Reads at 10, 100 and 200, before, between and after two looks; `between` adds what happens from 70 on.
fn reads(between: impl FnOnce(&mut Script)) -> Script {
    let mut script = Script::new();
    read(&mut script, 10);
    script.by(1).at(70);
    between(&mut script);
    read(&mut script, 100);
    read(&mut script, 200);
    script
}

/// The same, with one event at 70.
fn with(pid: u32, what: EventKind) -> Script {
    reads(|script| {
        script.by(pid).what(what);
    })
}

/// Descriptor 3 is closed at 70 and open again.
fn close(script: &mut Script) {
    script.enter(Call::Close).at(71).exit(Call::Close, 0);
}

#[test]
fn a_call_before_or_after_a_look_is_about_the_file_that_the_look_showed() {
    let script = reads(|_| {});
    assert_eq!(paths(&script, looks(&[seen("/a", 1, (0, 1))])), ["/a", "/a", "/a"]);
    assert_eq!(paths(&script, OpenFiles::default()), ["", "", ""]);
    let of_other = Seen { fd: 4, ..seen("/a", 1, (0, 1)) };
    assert_eq!(paths(&script, looks(&[of_other])), ["", "", ""]);
}

#[test]
fn a_descriptor_that_was_used_again_has_another_file() {
    let script = reads(close);
    let both = [seen("/a", 1, (0, 0)), seen("/b", 2, (1, 1))];
    assert_eq!(paths(&script, looks(&both)), ["/a", "/b", "/b"]);
    assert_eq!(paths(&script, looks(&both[..1])), ["/a", "", ""]);
    assert_eq!(paths(&script, looks(&both[1..])), ["", "/b", "/b"]);
}

#[test]
fn whatever_may_close_a_descriptor_ends_what_a_look_showed() {
    let once = || looks(&[seen("/a", 1, (0, 0))]);
    for call in [Call::CloseRange, Call::Dup2, Call::Dup3, Call::Execve, Call::Execveat] {
        let what = match call {
            Call::Dup2 | Call::Dup3 => EventKind::CallEnter { call, fd: Some(3) },
            _ => EventKind::CallEnter { call, fd: None },
        };
        let script = reads(|script| {
            script.what(what).at(71).exit(call, 0);
        });
        assert_eq!(paths(&script, once()), ["/a", "", ""], "{call:?}");
    }
    let operation = Some(Call::Close);
    let by_ring = EventKind::UringSubmit { request: 9, sq_thread: false, operation };
    let reused = EventKind::Fork { child: 1, same_process: false };
    for (pid, what) in [(1, by_ring), (2, reused)] {
        assert_eq!(paths(&with(pid, what), once()), ["/a", "", ""], "{what:?}");
    }
}

#[test]
fn another_descriptor_or_another_process_changes_nothing() {
    let once = || looks(&[seen("/a", 1, (0, 0))]);
    for (pid, fd) in [(1, 4), (2, 3)] {
        let script = with(pid, EventKind::CallEnter { call: Call::Close, fd: Some(fd) });
        assert_eq!(paths(&script, once()), ["/a", "/a", "/a"], "descriptor {fd} of {pid}");
    }
}

#[test]
fn a_thread_closes_the_files_of_its_process() {
    let mut script = Script::new();
    script.by(1).at(1).what(EventKind::Fork { child: 2, same_process: true });
    script.by(2).at(10).enter(Call::Read).at(15).exit(Call::Read, 1).at(70);
    close(&mut script);
    read(&mut script, 100);
    assert_eq!(paths(&script, looks(&[seen("/a", 1, (0, 0))])), ["/a", ""]);
}

#[test]
fn a_look_during_which_a_file_is_closed_shows_nothing_of_it() {
    for (from_ns, to_ns) in [(55, 70), (45, 55), (52, 58), (40, 50), (60, 65)] {
        let mut script = Script::new();
        read(&mut script, 10);
        script.at(from_ns).enter(Call::Close).at(to_ns).exit(Call::Close, 0);
        read(&mut script, 100);
        let found = paths(&script, looks(&[seen("/a", 1, (0, 0))]));
        assert_eq!(found, ["", ""], "{from_ns} to {to_ns}");
    }
}

#[test]
fn looks_that_differ_without_a_close_tell_of_an_unseen_one() {
    let script = reads(|_| {});
    let both = [seen("/a", 1, (0, 0)), seen("/b", 2, (1, 1))];
    assert_eq!(paths(&script, looks(&both)), ["", "", ""]);
    let moved = [seen("/a", 1, (0, 0)), seen("/b", 1, (1, 1))];
    assert_eq!(paths(&script, looks(&moved)), ["/a", "/a", "/a"]);
}

#[test]
fn a_loss_of_events_may_hide_a_close() {
    // After the look, or before it.
    for (since_ns, first) in [(65, "/a"), (45, "")] {
        let script = with(0, EventKind::Lost { count: 1, since_ns: Some(since_ns) });
        assert_eq!(paths(&script, looks(&[seen("/a", 1, (0, 0))])), [first, "", ""]);
    }
}

#[test]
fn a_call_on_a_descriptor_that_is_not_open_has_no_file() {
    let mut script = Script::new();
    script.by(1).at(10).enter(Call::Read).at(15).exit(Call::Read, -9);
    assert_eq!(paths(&script, looks(&[seen("/a", 1, (0, 0))])), [""]);
}

#[test]
fn a_close_that_was_not_asked_for_is_not_shown() {
    let script = reads(close);
    let shown = |shows_close| {
        let mut follower = Follower::new(Options { shows_close, ..Options::default() });
        script.events.iter().for_each(|event| follower.take(event));
        follower.finish().calls_without_request.len()
    };
    assert_eq!((shown(false), shown(true)), (3, 4));
}

#[test]
fn writeback_has_the_file_that_was_open_with_its_inode() {
    let file = |open_files| {
        let mut script = reads(close);
        for at_ns in [65, 110] {
            let place = extent("W", at_ns, 8);
            script.named(60, "kworker/u8:1").at(at_ns);
            script.what(EventKind::WritebackStart { inode: 5 });
            script.block('Q', place).block('G', place).block('D', place);
            script.at(at_ns + 1).block('C', place).what(EventKind::WritebackEnd { inode: 5 });
        }
        script.events.sort_by_key(|event| event.time_ns);
        let trace = follow(&script, open_files);
        let path = |request: usize| trace.path(trace.requests[request].file).map(str::to_string);
        [path(0), path(1)]
    };
    // Once it is closed, the inode may be that of another file.
    assert_eq!(file(looks(&[seen("/a", 5, (0, 0))])), [Some("/a".into()), None]);
    let mut elsewhere = seen("/a", 5, (0, 0));
    elsewhere.file.device = "8:1".into();
    assert_eq!(file(looks(&[elsewhere])), [None, None]);
}

#[test]
fn looks_from_before_the_kept_events_are_left_out() {
    let all = OpenFiles {
        looks: vec![(1, 2), (10, 11), (20, 21)],
        files: vec![seen("/a", 1, (0, 0)), seen("/b", 2, (0, 1)), seen("/c", 3, (2, 2))],
    };
    let kept = OpenFiles {
        looks: vec![(10, 11), (20, 21)],
        files: vec![seen("/b", 2, (0, 0)), seen("/c", 3, (1, 1))],
    };
    assert_eq!((all.clone().since(5), all.clone().since(0)), (kept, all));
}
