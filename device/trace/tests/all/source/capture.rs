// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tracing this kernel: what is captured, and that nothing of it stays behind.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use steadyio_trace::event::{Call, Dev, Event, EventKind, Extent, UNKNOWN_CPU};
use steadyio_trace::follow::{self, Follower};
use steadyio_trace::source::Position;
use steadyio_trace::source::capture::{Capture, Captured, Options};
use steadyio_trace::source::tracefs::Tracefs;

use crate::disk::{
    Disk, instance, instances, settings_of_others, traceable_disk, unless_disturbed,
};
use crate::samples::split;

fn start(options: &Options) -> Capture {
    Capture::start(options, &mut |note| eprintln!("{note}")).unwrap()
}

fn only(disk: &Disk) -> Options {
    Options { devices: vec![disk.dev()], ..Options::default() }
}

/// Reads blocks past the page cache, in a process of its own, for ours is the tracer.
fn read_blocks(disk: &Disk, count: u32) -> Child {
    let arguments = [format!("if={}", disk.node), format!("count={count}")];
    let mut dd = Command::new("dd");
    dd.args(["of=/dev/null", "bs=4k", "iflag=direct"]).args(arguments);
    dd.stderr(Stdio::null()).spawn().unwrap()
}

/// Now, on the clock of the events.
fn mono_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

fn events(captured: &Captured) -> Vec<Event> {
    captured.events().map(|event| event.unwrap()).collect()
}

fn dev_of(what: &EventKind) -> Option<Dev> {
    match what {
        EventKind::BioQueue(extent)
        | EventKind::GetRequest(extent)
        | EventKind::Insert(extent)
        | EventKind::Issue(extent)
        | EventKind::Complete { extent, .. } => Some(extent.dev),
        _ => None,
    }
}

fn issued(what: &EventKind) -> Option<Extent> {
    match what {
        EventKind::Issue(extent) => Some(*extent),
        _ => None,
    }
}

/// How many blocks from the first on are there. Others may read the disk too: udev looks at each new one.
fn first_blocks(events: &[Event], wanted: impl Fn(&EventKind) -> Option<Extent>) -> u64 {
    let extents = events.iter().filter_map(|event| wanted(&event.what));
    let blocks = extents.filter(|extent| extent.sectors == 8);
    let sectors: BTreeSet<u64> = blocks.map(|extent| extent.sector).collect();
    (0..).take_while(|block| sectors.contains(&(block * 8))).count() as u64
}

fn lost(events: &[Event]) -> u64 {
    let counts = events.iter().map(|event| match event.what {
        EventKind::Lost { count, .. } => count,
        _ => 0,
    });
    counts.sum()
}

#[test]
fn each_read_of_a_process_is_there_from_its_call_to_its_end() {
    let Some(disk) = traceable_disk() else { return };
    let capture = start(&only(&disk));
    let mut dd = read_blocks(&disk, 200);
    dd.wait().unwrap();
    let captured = capture.stop(&[dd.id()]).unwrap();
    let events = events(&captured);
    assert!(events.is_sorted_by_key(|event| event.time_ns));
    assert_eq!(lost(&events), 0);
    let meta = &captured.meta;
    assert_eq!(meta.asked_for, [dd.id()]);
    assert!(
        meta.unavailable.iter().any(|missing| missing.event == "k2:*"),
        "{:?}",
        meta.unavailable
    );

    let count =
        |wanted: &dyn Fn(&Event) -> bool| events.iter().filter(|event| wanted(event)).count();
    let by_dd = |event: &Event| event.pid == dd.id();
    assert_eq!(count(&|event| by_dd(event) && matches!(event.what, EventKind::BioQueue(_))), 200);
    let ended = |what: &EventKind| match what {
        EventKind::Complete { extent, .. } => Some(*extent),
        _ => None,
    };
    assert!(first_blocks(&events, issued) >= 200);
    assert!(first_blocks(&events, ended) >= 200);
    let whole = EventKind::CallExit { call: Call::Read, result: 4096 };
    // Each ends with a name, though only block events carry one. Its program is read too, and the first bytes of
    // each library.
    let named = |event: &Event| event.comm.to_string() == "dd";
    assert!(count(&|event| by_dd(event) && event.what == whole && named(event)) >= 200);
    let devices: Vec<Dev> = events.iter().filter_map(|event| dev_of(&event.what)).collect();
    assert!(devices.iter().all(|dev| *dev == disk.dev()), "another device's events are there");
}

#[test]
fn a_kept_capture_gives_the_same_events_as_memory() {
    let Some(disk) = traceable_disk() else { return };
    let dir = disk.dir.path().join("kept");
    let capture = start(&Options { keep: Some(dir.clone()), ..only(&disk) });
    read_blocks(&disk, 100).wait().unwrap();
    let live = capture.stop(&[]).unwrap();
    let kept = Captured::open(&dir).unwrap();
    assert_eq!(kept.meta, live.meta);
    let found = events(&kept);
    assert!(found.len() > 300, "{}", found.len());
    assert_eq!(found, events(&live));
    assert_eq!(found, events(&kept), "a second reading differs");
}

/// The path of each read with a request by this process, in this reading of the capture.
fn paths_of_reads(captured: &Captured, process: u32) -> Vec<Option<String>> {
    let (processes, open_files) = (captured.processes(), captured.open_files());
    let options = follow::Options { processes, open_files, ..follow::Options::default() };
    let mut follower = Follower::new(options);
    events(captured).iter().for_each(|event| follower.take(event));
    let trace = follower.finish();
    let own = trace.ios.iter().filter(|io| io.pid == process && io.call == Call::Read);
    own.map(|io| trace.path(io.file).map(str::to_string)).collect()
}

#[test]
fn a_look_shows_the_path_of_a_file_for_all_reads_of_a_traced_process() {
    let Some(disk) = traceable_disk() else { return };
    let (dir, pipe) = (disk.dir.path().join("kept"), disk.dir.path().join("pipe"));
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
    let mut command = Command::new("dd");
    command.args(["bs=4k", "count=100", "iflag=direct", "status=none"]);
    command.args([format!("if={}", disk.node), format!("of={}", pipe.display())]);
    let options = Options { threads: Some(Vec::new()), keep: Some(dir.clone()), ..only(&disk) };
    let mut capture = start(&options);
    let (mut dd, _) = capture.spawn(&mut command).unwrap();
    let mut from_dd = fs::File::open(&pipe).unwrap();
    // It has opened both files, and the pipe is full before it has read all blocks.
    from_dd.read_exact(&mut [0; 4096]).unwrap();
    capture.look_at_files();
    io::copy(&mut from_dd, &mut io::sink()).unwrap();
    dd.wait().unwrap();
    let live = capture.stop(&[dd.id()]).unwrap();
    let processes = live.meta.open_files.files.iter().map(|seen| seen.process);
    assert!(processes.into_iter().all(|process| process == dd.id()));
    let found = paths_of_reads(&live, dd.id());
    let of_disk = Some(disk.node.clone());
    assert_eq!(found.iter().filter(|path| **path == of_disk).count(), 100, "{found:?}");
    assert_eq!(paths_of_reads(&Captured::open(&dir).unwrap(), dd.id()), found);
}

#[test]
fn other_tracing_stays_as_it_is() {
    let Some(disk) = traceable_disk() else { return };
    let others = instance();
    others.write("events/block/block_rq_issue/enable", "1").unwrap();
    others.write("tracing_on", "1").unwrap();
    let of_other = || {
        ["trace_clock", "set_event", "tracing_on", "buffer_size_kb"]
            .map(|file| others.read(file).unwrap())
    };
    let before = of_other();
    assert!(unless_disturbed(|| {
        let whole_kernel = settings_of_others();
        let capture = start(&only(&disk));
        read_blocks(&disk, 10).wait().unwrap();
        assert_eq!(of_other(), before);
        let meanwhile = settings_of_others();
        capture.stop(&[]).unwrap();
        assert_eq!(of_other(), before);
        meanwhile == whole_kernel && settings_of_others() == whole_kernel
    }));
    others.write("tracing_on", "0").unwrap();
    assert!(others.read("trace").unwrap().contains("block_rq_issue"));
}

#[test]
fn nothing_stays_behind_a_stop_or_a_panic() {
    let Some(disk) = traceable_disk() else { return };
    let ours = format!("steady-{}-", std::process::id());
    start(&only(&disk)).stop(&[]).unwrap();
    assert_eq!(instances(&ours).len(), 0);
    let options = only(&disk);
    let panicked = std::thread::spawn(move || {
        let _capture = start(&options);
        panic!("as asked");
    });
    panicked.join().unwrap_err();
    assert_eq!(instances(&ours).len(), 0);
    let threads = fs::read_dir("/proc/self/task").unwrap();
    let names = threads
        .map(|task| fs::read_to_string(task.unwrap().path().join("comm")).unwrap_or_default());
    assert!(
        !names.into_iter().any(|name| name.trim() == "steady-trace"),
        "a reading thread is left"
    );
}

/// Not a test: what `the_next_start_removes_what_a_killed_run_left` kills.
#[test]
#[ignore = "run by another test only"]
fn captures_until_killed() {
    let _capture = start(&Options::default());
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn the_next_start_removes_what_a_killed_run_left() {
    let Some(disk) = traceable_disk() else { return };
    // A trace of another run may be the next that starts.
    assert!(unless_disturbed(|| {
        let mut run = Command::new(std::env::current_exe().unwrap());
        run.args(["--ignored", "--exact", "source::capture::captures_until_killed"])
            .stdout(Stdio::null());
        let mut run = run.spawn().unwrap();
        let ours = format!("steady-{}-", run.id());
        let deadline = Instant::now() + Duration::from_secs(60);
        while instances(&ours).is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        // It lives: its instance is not a leftover.
        start(&only(&disk)).stop(&[]).unwrap();
        assert_eq!(instances(&ours).len(), 1);
        run.kill().unwrap();
        run.wait().unwrap();
        let mut notes = Vec::new();
        let capture = Capture::start(&only(&disk), &mut |note| notes.push(note)).unwrap();
        assert_eq!(instances(&ours).len(), 0);
        drop(capture);
        notes.iter().any(|note| note.contains(&ours))
    }));
}

#[test]
fn tracing_ends_where_memory_is_full_and_the_program_goes_on() {
    let Some(disk) = traceable_disk() else { return };
    let period = Duration::from_millis(1);
    let options = Options { memory_bytes_max: 32 << 10, period, ..only(&disk) };
    let capture = start(&options);
    let mut dd = read_blocks(&disk, 2000);
    assert!(dd.wait().unwrap().success());
    let deadline = Instant::now() + Duration::from_secs(60);
    while !capture.reader.has_ended() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
    let captured = capture.stop(&[]).unwrap();
    assert!(captured.meta.memory_full);
    // Whose events came first is not known: calls of all programs are traced.
    assert!(!events(&captured).is_empty(), "nothing was captured");
}

#[test]
fn a_full_memory_moves_to_the_folder_and_nothing_is_lost() {
    let Some(disk) = traceable_disk() else { return };
    let dir = disk.dir.path().join("kept");
    let period = Duration::from_millis(1);
    let options =
        Options { memory_bytes_max: 32 << 10, period, keep: Some(dir.clone()), ..only(&disk) };
    let capture = start(&options);
    read_blocks(&disk, 2000).wait().unwrap();
    let captured = capture.stop(&[]).unwrap();
    assert!(!captured.meta.memory_full);
    let found = events(&captured);
    assert_eq!(lost(&found), 0);
    assert!(first_blocks(&found, issued) >= 2000);
    assert_eq!(events(&Captured::open(&dir).unwrap()), found);
}

#[test]
fn a_full_memory_that_the_folder_cannot_take_ends_the_trace_and_nothing_is_lost() {
    let Some(disk) = traceable_disk() else { return };
    let dir = disk.dir.path().join("kept");
    let cpus = fs::read_to_string("/sys/devices/system/cpu/possible").unwrap();
    let last = cpus.trim().rsplit(['-', ',']).next().unwrap();
    // Where the pages of the last CPU are to go: those of the others are there by then.
    let in_the_way = dir.join(format!("cpu{last}.raw"));
    fs::create_dir_all(&in_the_way).unwrap();
    let period = Duration::from_millis(1);
    let options =
        Options { memory_bytes_max: 32 << 10, period, keep: Some(dir.clone()), ..only(&disk) };
    let capture = start(&options);
    read_blocks(&disk, 2000).wait().unwrap();
    while !capture.reader.has_ended() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let captured = capture.stop(&[]).unwrap();
    assert!(captured.meta.memory_full);
    let says = format!("keeping the trace in {}: ", dir.display());
    assert!(captured.not_kept.as_ref().unwrap().to_string().starts_with(&says));
    let found = events(&captured);
    assert_eq!(lost(&found), 0);
    assert!(!found.is_empty(), "nothing was captured");
    let left: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left, [in_the_way]);
}

#[test]
fn every_record_that_the_kernel_lost_is_told_of() {
    let Some(disk) = traceable_disk() else { return };
    // Nobody looks at these small buffers before the end.
    let options = Options { buffer_kib: 8, period: Duration::from_secs(600), ..only(&disk) };
    let capture = start(&options);
    read_blocks(&disk, 2000).wait().unwrap();
    let captured = capture.stop(&[]).unwrap();
    let records_lost: u64 = captured.meta.cpus.iter().map(|cpu| cpu.records_lost).sum();
    assert!(records_lost > 1000, "{records_lost}");
    assert_eq!(lost(&events(&captured)), records_lost);
}

#[test]
fn a_page_without_room_for_the_count_still_says_where_records_were_lost() {
    let Some(disk) = traceable_disk() else { return };
    let dir = disk.dir.path().join("kept");
    let small = Options { buffer_kib: 8, period: Duration::from_secs(600), ..only(&disk) };
    let capture = start(&Options { keep: Some(dir.clone()), ..small });
    read_blocks(&disk, 2000).wait().unwrap();
    let captured = capture.stop(&[]).unwrap();
    for cpu in &captured.meta.cpus {
        let mut pages = fs::read(dir.join(&cpu.file)).unwrap();
        // The bit that says that the count is stored.
        pages.chunks_mut(4096).for_each(|page| page[11] &= !(1 << 6));
        fs::write(dir.join(&cpu.file), pages).unwrap();
    }
    let records_lost: u64 = captured.meta.cpus.iter().map(|cpu| cpu.records_lost).sum();
    let found = events(&Captured::open(&dir).unwrap());
    assert_eq!(lost(&found), records_lost);
    let whole = events(&captured);
    assert_eq!(found.len(), whole.len(), "a further loss at the end");
}

#[test]
fn records_that_no_page_tells_of_may_be_missing_anywhere() {
    let Some(disk) = traceable_disk() else { return };
    let dir = disk.dir.path().join("kept");
    let capture = start(&Options { keep: Some(dir.clone()), ..only(&disk) });
    read_blocks(&disk, 10).wait().unwrap();
    capture.stop(&[]).unwrap();
    replace(&dir.join("capture.json"), "\"records_lost\": 0", "\"records_lost\": 5");
    replace(&dir.join("capture.json"), "_unplaced\": 0", "_unplaced\": 5");
    let captured = Captured::open(&dir).unwrap();
    let last = *events(&captured).last().unwrap();
    assert_eq!((last.cpu, last.what), (UNKNOWN_CPU, EventKind::Lost { count: 5, since_ns: None }));
    let cpus = captured.meta.cpus.len() as u64;
    assert_eq!(lost(&events(&captured)), 5 * cpus);
}

#[test]
fn the_newest_records_are_kept_whatever_is_set_for_the_kernel() {
    let Some(disk) = traceable_disk() else { return };
    let tracefs = Tracefs::find().unwrap();
    let options = tracefs.root.join("trace_options");
    let before = fs::read_to_string(&options).unwrap();
    fs::write(&options, "nooverwrite").unwrap();
    let small = Options { buffer_kib: 8, period: Duration::from_secs(600), ..only(&disk) };
    let capture = Capture::start(&small, &mut |note| eprintln!("{note}"));
    let word =
        if before.lines().any(|line| line == "overwrite") { "overwrite" } else { "nooverwrite" };
    fs::write(&options, word).unwrap();
    let capture = capture.unwrap();
    read_blocks(&disk, 2000).wait().unwrap();
    // The buffers have been full for long. Whose events are the last is not known: calls of all programs are traced.
    let full_ns = mono_ns();
    read_blocks(&disk, 10).wait().unwrap();
    let captured = capture.stop(&[]).unwrap();
    let last = *events(&captured).last().unwrap();
    assert!(last.time_ns > full_ns, "the last reads are not there");
    assert!(captured.meta.cpus.iter().all(|cpu| cpu.records_lost_unplaced == 0));
}

#[test]
fn what_a_process_starts_belongs_to_it() {
    let Some(disk) = traceable_disk() else { return };
    let capture = start(&only(&disk));
    let script = format!("dd if={} of=/dev/null bs=4k iflag=direct count=3 & wait", disk.node);
    let mut shell = Command::new("sh").args(["-c", &script]).stderr(Stdio::null()).spawn().unwrap();
    shell.wait().unwrap();
    let captured = capture.stop(&[shell.id()]).unwrap();
    let mut asked_for = captured.asked_for().unwrap();
    let mut queued_by_dd = 0;
    for event in events(&captured) {
        asked_for.take(&event);
        if matches!(event.what, EventKind::BioQueue(_)) && event.comm.to_string() == "dd" {
            assert_ne!(event.pid, shell.id());
            queued_by_dd += u32::from(asked_for.includes(event.pid, event.time_ns));
        }
    }
    assert_eq!(queued_by_dd, 3);
    assert!(!asked_for.includes(1, captured.meta.stopped.mono_ns));
}

#[test]
fn a_damaged_folder_is_a_problem_with_its_place() {
    let Some(disk) = traceable_disk() else { return };
    let dir = disk.dir.path().join("kept");
    let capture = start(&Options { keep: Some(dir.clone()), ..only(&disk) });
    read_blocks(&disk, 100).wait().unwrap();
    let whole = capture.stop(&[]).unwrap();
    let largest = whole.meta.cpus.iter().max_by_key(|cpu| cpu.bytes).unwrap();
    let (pages, bytes) = (dir.join(&largest.file), largest.bytes);

    // The last page is cut in the middle, or whole: what lies before it is read, and its end is lost.
    for left in [12, 0] {
        let file = fs::File::options().write(true).open(&pages).unwrap();
        file.set_len(bytes - 4096 + left).unwrap();
        let cut = Captured::open(&dir).unwrap();
        let (events, problems) = split(cut.events());
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!(problems[0].place, Position::Byte(bytes - 4096));
        let (last, before) = events.split_last().unwrap();
        let read_ns = before.iter().rfind(|event| event.cpu == largest.cpu).unwrap().time_ns;
        let EventKind::Lost { count: 0, since_ns: Some(since_ns) } = last.what else {
            panic!("{last:?}")
        };
        assert!(last.cpu == largest.cpu && since_ns >= read_ns, "{last:?}");
    }

    replace(&dir.join("formats/block/block_rq_issue"), "ID: ", "ID: x");
    let problem = Captured::open(&dir).unwrap_err();
    assert!(problem.file.ends_with("block_rq_issue"), "{problem}");
    assert!(problem.what.contains("ID \"x"), "{problem}");
    replace(&dir.join("capture.json"), "trace-capture/1", "trace-capture/9");
    assert!(Captured::open(&dir).unwrap_err().what.contains("trace-capture/9"));
    replace(&dir.join("capture.json"), "\"clock\"", "\"cloc\"");
    assert!(Captured::open(&dir).unwrap_err().what.contains("clock"));
    fs::remove_file(dir.join("capture.json")).unwrap();
    assert!(!Captured::is_folder(&dir));
    assert!(Captured::open(&dir).is_err());
}

fn replace(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{from} is not in {}", path.display());
    fs::write(path, text.replace(from, to)).unwrap();
}

#[test]
fn who_is_not_root_is_told_so() {
    let Some(_disk) = traceable_disk() else { return };
    // Only of this thread: the others stay root.
    let nobody = rustix::thread::Uid::from_raw(65534);
    let refused = std::thread::spawn(move || {
        rustix::thread::set_thread_uid(nobody).unwrap();
        Capture::start(&Options::default(), &mut |_| {}).map(drop).unwrap_err().to_string()
    });
    let error = refused.join().unwrap();
    assert!(error.contains("run as root"), "{error}");
}

#[test]
fn without_a_mount_tracefs_is_mounted_for_this_process_only() {
    let Some(_disk) = traceable_disk() else { return };
    // What else is mounted meanwhile is the machine's doing.
    let mounts = || {
        let all = fs::read_to_string("/proc/self/mountinfo").unwrap();
        all.lines()
            .filter(|line| line.contains(" tracefs "))
            .map(str::to_string)
            .collect::<Vec<_>>()
    };
    assert!(unless_disturbed(|| {
        let before = mounts();
        let mounted = Tracefs::mount().unwrap();
        assert!(mounted.root.join("instances").is_dir());
        mounts() == before
    }));
}
