// SPDX-License-Identifier: MIT OR Apache-2.0
//! The format of a file is detected from its content, and several files are one trace.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::AsRawFd;
use std::path::Path;

use steadyio_trace::event::{Dev, Event, OpKind};
use steadyio_trace::follow::{Follower, Options};
use steadyio_trace::io::Trace;
use steadyio_trace::source::detect::{Format, format};
use steadyio_trace::source::{Position, Problem, files};
use tempfile::TempDir;

use crate::samples::{all_events, bytes, path, split};

/// Every sample and its format.
const SAMPLES: [(&str, Format); 12] = [
    ("host-trace.txt", Format::Ftrace),
    ("host-tgid.txt", Format::Ftrace),
    ("host-latency.txt", Format::Ftrace),
    ("host-no-irq-info.txt", Format::Ftrace),
    ("host-report.txt", Format::Ftrace),
    ("host-report-t.txt", Format::Ftrace),
    ("host-report-l.txt", Format::Ftrace),
    ("host-perf.txt", Format::Perf),
    ("host-perf-fields-ns.txt", Format::Perf),
    ("6.1-report.txt", Format::Ftrace),
    ("6.12-trace.txt", Format::Ftrace),
    ("6.1-dm-trace.txt", Format::Ftrace),
];

fn read<P: AsRef<Path>>(paths: &[P]) -> Result<(Vec<Event>, Vec<Problem>), Problem> {
    Ok(split(files::open(paths, None)?))
}

fn followed(name: &str) -> Trace {
    let mut follower = Follower::new(Options::default());
    let events = all_events(files::open(&[path(name)], None).expect(name));
    events.iter().for_each(|event| follower.take(event));
    follower.finish()
}

#[test]
fn every_sample_is_known_by_its_content() {
    for (name, expected) in SAMPLES {
        assert_eq!(format(&bytes(name)), Ok(expected), "{name}");
        all_events(files::open(&[path(name)], None).expect(name));
    }
}

#[test]
fn what_goes_through_device_mapper_and_a_partition_is_followed_to_the_disk() {
    let trace = followed("6.1-dm-trace.txt");
    assert_eq!((trace.account.matched, trace.account.unmatched_count), (27, 0));
    assert_eq!(trace.account.at_the_edges, 0);
    let mapped = Dev { major: 253, minor: 0 };
    let partition = Dev { major: 259, minor: 0 };
    let mut counts = BTreeMap::new();
    for request in &trace.requests {
        let key = (request.op.kind, request.bytes, request.through.clone());
        *counts.entry(format!("{key:?}")).or_insert(0) += 1;
        assert_eq!(request.dev, Dev { major: 254, minor: 0 });
    }
    let both = vec![mapped, partition];
    let expected = [
        ((OpKind::Read, 4 << 10, both.clone()), 10),
        // 128 KiB, split at the limit of the disk, 255 sectors.
        ((OpKind::Read, 255 << 9, both.clone()), 2),
        ((OpKind::Read, 1 << 9, both.clone()), 2),
        ((OpKind::Write, 8 << 10, both), 2),
        ((OpKind::Flush, 0, vec![mapped]), 2),
        ((OpKind::Read, 16 << 10, vec![partition]), 5),
        ((OpKind::Read, 32 << 10, vec![]), 4),
    ];
    assert_eq!(counts, expected.into_iter().map(|(key, n)| (format!("{key:?}"), n)).collect());
}

#[test]
fn requests_are_the_same_whichever_tool_recorded_them() {
    let requests = |name: &str| {
        let trace = followed(name);
        assert_eq!(trace.account.unmatched_count, 0, "{name}: {:?}", trace.account.unmatched);
        let of =
            |request: &steadyio_trace::io::Request| (request.sector, request.bytes, request.op);
        let mut requests: Vec<_> = trace.requests.iter().map(of).collect();
        requests.sort();
        requests
    };
    assert!(requests("host-trace.txt").len() >= 20);
    assert_eq!(requests("host-trace.txt"), requests("host-report-t.txt"));
    assert_eq!(requests("host-trace.txt"), requests("host-perf-fields-ns.txt"));
}

#[test]
fn what_is_no_trace_is_refused_with_what_was_looked_for() {
    let ascii = |text: &str| text.as_bytes().to_vec();
    for (content, expected) in [
        (ascii("Dear all,\nhello\n"), "Looked for: ftrace's text"),
        (vec![0; 5000], "Looked for: ftrace's text"),
        (ascii("PERFILE2xxxx"), "perf script"),
        (ascii("\x07tae...."), "blktrace, which has no system calls"),
        (b"\x1f\x8b\x08\0".to_vec(), "gzip"),
        (b"\x28\xb5\x2f\xfd\0".to_vec(), "zstd"),
        (b"\xff\xfe#\0".to_vec(), "UTF-16"),
        (ascii("# tracer: function_graph\n 1)   0.5 us  |  vfs_read();\n"), "Looked for"),
    ] {
        let why = format(&content).expect_err(expected);
        assert!(why.contains(expected), "{why}");
    }
}

#[test]
fn values_of_another_kernel_do_not_hide_the_format() {
    let line = "dd-1 [000] 1.000000: scsi_dispatch_cmd_start: host_no=2\n";
    assert_eq!(format(line.as_bytes()), Ok(Format::Ftrace));
}

#[test]
fn a_page_of_systrace_is_named_with_what_takes_the_text_out() {
    let page = "<!DOCTYPE html>\n<html>\n<body>\n  <script class=\"trace-data\" type=\"application/text\">\n\
                # tracer: nop\n\
                 app-7  (    7) [006] d..2  3.434652: block_rq_issue: 179,0 W 0 () 8 + 8 [app]\n\
                 app-7  (-----) [006] d..2  3.434752: block_rq_complete: 179,0 W () 8 + 8 [0]\n  \
                </script>\n</body>\n</html>\n";
    let why = format(page.as_bytes()).expect_err("a page");
    assert!(why.contains("Systrace"), "{why}");
    let folder = TempDir::new().expect("a folder");
    std::fs::write(folder.path().join("FILE"), page).expect("a page");
    let command = why.split('`').nth(1).expect("a command");
    let mut shell = std::process::Command::new("sh");
    let status = shell.args(["-c", command]).current_dir(&folder).status().expect("a shell");
    assert!(status.success(), "{command}");
    let text = files::open(&[folder.path().join("trace.txt")], None).expect("a trace");
    assert_eq!(all_events(text).len(), 2);
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let folder = TempDir::new().expect("a folder");
    for (path, expected) in [
        (Path::new("/nonexistent/trace"), "/nonexistent/trace: cannot be opened"),
        (folder.path(), "is a folder, but not one of `steady trace --keep`"),
    ] {
        let problem = files::open(&[path], None).err().expect(expected);
        assert_eq!(problem.place, Position::Whole);
        assert!(problem.to_string().contains(expected), "{problem}");
    }
}

#[test]
fn parts_by_time_and_by_cpu_make_the_whole() {
    let folder = TempDir::new().expect("a folder");
    let whole = String::from_utf8(bytes("host-report-t.txt")).expect("text");
    let lines: Vec<&str> = whole.lines().filter(|line| !line.starts_with("cpus=")).collect();
    let write = |name: &str, lines: &[&str]| {
        let path = folder.path().join(name);
        fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>())
            .expect(name);
        path
    };
    let (first, second) = lines.split_at(lines.len() / 2);
    let by_time = [write("2", second), write("1", first)];
    let of_cpu = |cpu: &str| -> Vec<&str> {
        lines.iter().copied().filter(|line| line.contains(&format!("[{cpu}]  "))).collect()
    };
    let by_cpu = [write("cpu0", &of_cpu("000")), write("cpu1", &of_cpu("001"))];
    let expected = all_events(files::open(&[path("host-report-t.txt")], None).expect("a sample"));
    for parts in [by_time, by_cpu] {
        let (events, problems) = read(&parts).expect("parts");
        assert_eq!(problems, []);
        assert_eq!(events, expected);
    }
}

#[test]
fn a_file_without_events_leaves_the_others_readable() {
    let folder = TempDir::new().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect(name);
        path
    };
    let all = [
        file("cpu0", "dd-1 [000] 1.000000: contention_end: 0x1 (ret=0)\n"),
        file("cpu1", "# tracer: nop\n#\n#           TASK-PID     CPU#  TIMESTAMP  FUNCTION\n"),
        file("cpu2", "cpus=2\n"),
        file("cpu3", ""),
    ];
    let (events, problems) = read(&all).expect("a trace");
    assert_eq!((events.len(), problems.len()), (1, 1));
    assert!(problems[0].to_string().ends_with("cpu3: is empty"), "{}", problems[0]);
    assert_eq!(read(&all[1..3]).expect("headings"), (vec![], vec![]));
}

#[test]
fn what_was_skipped_in_all_files_is_summed() {
    let folder = TempDir::new().expect("a folder");
    let file = |name: &str, lines: usize| {
        let path = folder.path().join(name);
        let line = "dd-1 [000] 1.000000: other_event: x\n";
        fs::write(&path, line.repeat(lines)).expect(name);
        path
    };
    let mut files = files::open(&[file("one", 2), file("two", 3)], None).expect("texts");
    files.by_ref().for_each(drop);
    assert_eq!(files.skipped(), 5);
}

#[test]
fn a_pipe_can_be_read() {
    let folder = TempDir::new().expect("a folder");
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
    assert!(made.success());
    let writer = {
        let pipe = pipe.clone();
        std::thread::spawn(move || fs::write(pipe, bytes("host-trace.txt")).expect("a pipe"))
    };
    let events = all_events(files::open(&[&pipe], None).expect("a pipe"));
    writer.join().expect("the writer");
    assert_eq!(events, all_events(files::open(&[path("host-trace.txt")], None).expect("a sample")));
}

#[test]
fn a_damaged_trace_dat_is_a_problem() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("trace.dat");
    for (content, expected) in [
        (
            &b"\x17\x08\x44tracing6\0and then nothing of use"[..],
            "trace-cmd report prints nothing: the file is damaged",
        ),
        (b"no trace", "trace-cmd report failed (exit status: 255): error reading header"),
    ] {
        fs::write(&path, content).expect("a file");
        let opened = fs::File::open(&path).expect("a file");
        let number = format!("/proc/self/fd/{}", opened.as_raw_fd());
        for path in [path.as_path(), Path::new(&number)] {
            let (events, problems) =
                split(files::open(&[path], Some(Format::TraceDat)).expect("trace-cmd"));
            assert_eq!(events, []);
            assert_eq!(problems.len(), 1);
            assert!(problems[0].what.contains(expected), "{}", problems[0]);
        }
    }
    assert_eq!(format(b"\x17\x08\x44tracing6\0"), Ok(Format::TraceDat));
}
