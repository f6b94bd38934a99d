// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every I/O, call and request as a row, and calls by thread.

use steadyio_trace::event::{Call, EventKind};
use steadyio_trace::io::Processes;
use steadyio_trace::open_files::File;
use steadyio_trace::report::question::Question;
use steadyio_trace::report::rows::{write_csv, write_json_lines};
use steadyio_trace::report::shown::Shown;
use steadyio_trace::source::capture::threads::AskedFor;

use crate::events::{Script, extent};
use crate::made::{record, valid};

/// A read with a request by thread 1, an fsync without one by another of a strange name, and a write that no call made.
fn script() -> Script {
    let mut script = Script::new();
    let (place, written) = (extent("R", 64, 8), extent("W", 800, 16));
    script.by(1).at(100).enter(Call::Pread64);
    script.at(110).block('Q', place).block('G', place).at(112).block('D', place);
    script.at(190).block('C', place).at(200).exit(Call::Pread64, 4096);
    script.named(2, "a, \"b\"").at(210).enter(Call::Fsync).at(260).exit(Call::Fsync, 0);
    script.by(9).at(300).block('Q', written).block('G', written).at(301).block('D', written);
    script.at(350).block('C', written);
    script
}

#[test]
fn each_io_call_and_request_that_is_shown_is_a_row_with_its_times() {
    let trace = script().follow();
    let question = Question::default();
    let shown = Shown::of(&trace, &question);
    let all = shown.rows();
    let of: Vec<_> = all.iter().map(|row| (row.kind, row.op, row.at_ns, row.total_ns)).collect();
    let expected =
        [("io", "read", 100, 100), ("call", "fsync", 210, 50), ("request", "write", 300, 50)];
    assert_eq!(of, expected);
    let mut csv = Vec::new();
    write_csv(&all, &mut csv).unwrap();
    let expected = "\
kind,at_ns,total_ns,call,op,origin,inode,device,sector,bytes,requests,pid,comm,class,error,submission_ns,block_ns,\
device_ns,post_ns,waited_for,cgroup,path
io,100,100,pread64,read,,,179:0,64,4096,1,1,task,,0,10,2,78,10,own_request,,
call,210,50,fsync,fsync,,,,,,0,2,\"a, \"\"b\"\"\",,,,,,,unknown,,
request,300,50,,write,thread,,179:0,800,8192,1,9,task,,0,,1,49,0,,,
";
    assert_eq!(String::from_utf8(csv).unwrap(), expected);
    let mut lines = Vec::new();
    write_json_lines(&all, &mut lines).unwrap();
    let lines = String::from_utf8(lines).unwrap();
    let parsed: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((parsed.len(), &parsed[1]["comm"]), (3, &"a, \"b\"".into()));
    assert_eq!(
        parsed[0].as_object().unwrap().len(),
        expected.lines().next().unwrap().split(',').count()
    );
}

#[test]
fn rows_are_of_those_asked_for_only() {
    let question = Question { asked_for: Some(AskedFor::of_number(1)), ..Question::default() };
    let trace = script().follow();
    let shown = Shown::of(&trace, &question);
    let kinds: Vec<_> = shown.rows().iter().map(|row| row.kind).collect();
    assert_eq!(kinds, ["io"]);
}

#[test]
fn calls_are_added_up_by_thread_the_longest_first() {
    let record = record(&script().follow(), &Question::default());
    valid(&record);
    let of =
        |at: usize| (record.threads[at].pid, record.threads[at].sum_ns, record.threads[at].ios);
    assert_eq!((of(0), of(1), record.threads.len()), ((1, 100, 1), (2, 50, 0), 2));
    assert_eq!(record.threads[1].comm, "a, \"b\"");
}

#[test]
fn calls_are_added_up_by_process_and_by_file_descriptor() {
    let mut script = script();
    script.by(1).at(400).what(EventKind::Fork { child: 2, same_process: true });
    script.by(2).at(410).what(EventKind::CallEnter { call: Call::Fdatasync, fd: Some(7) });
    script.at(450).exit(Call::Fdatasync, 0);
    let record = record(&script.follow(), &Question::default());
    valid(&record);
    let [process] = &record.processes[..] else { panic!("{:?}", record.processes) };
    assert_eq!((process.pid, process.times.count, process.sum_ns), (1, 3, 190));
    let of: Vec<_> = record.files.iter().map(|of| (of.pid, of.fd, of.sum_ns)).collect();
    assert_eq!(of, [(1, Some(3), 150), (1, Some(7), 40)]);
}

#[test]
fn calls_are_added_up_by_file_where_its_path_is_known() {
    let mut script = script();
    script.by(5).at(400).what(EventKind::CallEnter { call: Call::Fdatasync, fd: Some(7) });
    script.at(450).exit(Call::Fdatasync, 0);
    let mut trace = script.follow();
    let file = |path: &str| File { path: path.into(), ..File::default() };
    trace.files = vec![file("/other"), file("/data")];
    trace.ios[0].file = Some(1);
    trace.calls_without_request[1].file = Some(1);
    trace.requests[1].file = Some(0);
    let record = record(&trace, &Question { worst: 1, ..Question::default() });
    let json = valid(&record);
    let of = |at: usize| (record.files[at].path.as_deref(), record.files[at].fd);
    assert_eq!((of(0), of(1)), ((Some("/data"), None), (None, Some(3))));
    assert_eq!((record.files[0].sum_ns, record.files[0].pid, record.files.len()), (150, 5, 2));
    assert_eq!(json["worst_ios"][0]["path"], "/data");
    assert_eq!(json["worst_requests"][0]["path"], "/other");
    let question = Question::default();
    let paths: Vec<_> =
        Shown::of(&trace, &question).rows().iter().map(|row| row.path.clone()).collect();
    let [data, other] = ["/data", "/other"].map(|path| Some(path.to_string()));
    assert_eq!(paths, [data.clone(), None, other, data]);
}

#[test]
fn an_fsync_by_io_uring_is_one_whatever_its_first_request_does() {
    let data = extent("WS", 0, 8);
    let mut script = Script::new();
    script.by(1).at(0).enter(Call::IoUringEnter);
    let operation = Some(Call::Fsync);
    script.at(1).what(EventKind::UringSubmit { request: 9, sq_thread: false, operation });
    script.block('Q', data).block('G', data).block('D', data).at(50).block('C', data);
    script.at(51).what(EventKind::UringComplete { request: 9, result: 0 });
    script.at(60).exit(Call::IoUringEnter, 1);
    let record = record(&script.follow(), &Question::default());
    assert_eq!(record.ios.iter().map(|group| &*group.op).collect::<Vec<_>>(), ["fsync"]);
}

#[test]
fn a_cgroup_has_the_rows_of_its_processes_and_of_those_below_it() {
    let mut trace = script().follow();
    let cgroups = [(1, "/app/worker"), (2, "/application"), (9, "/")];
    let cgroups = cgroups.map(|(process, path)| (process, path.to_string()));
    trace.processes = Processes::new([].into(), cgroups.into());
    let of = |cgroup: &str| {
        let question = Question { cgroup: Some(cgroup.into()), ..Question::default() };
        let shown = Shown::of(&trace, &question);
        let rows = shown.rows();
        rows.iter().map(|row| (row.kind, row.cgroup.clone())).collect::<Vec<_>>()
    };
    let worker = ("io", Some("/app/worker".to_string()));
    assert_eq!(of("/app"), of("/app/worker/"));
    assert_eq!(of("/app"), [worker]);
    assert_eq!(of("/application"), [("call", Some("/application".to_string()))]);
    assert_eq!((of("/").len(), of("/other").len()), (3, 0));
}
