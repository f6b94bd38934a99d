// SPDX-License-Identifier: MIT OR Apache-2.0
//! Accepted workload files, and the messages about mistakes.

use std::fs;

use proptest::prelude::*;
use steadyio_bench::spec::expand::{Selection, Setting, Spec};
use steadyio_bench::spec::workload::Ioprio;
use steadyio_core::value::Value;

const GOOD: &str = r#"schema = "steadyio.workload/1"
name = "w"
seed = 1

[length]
ios = 10

[[job]]
name = "rt"
class = "rt"
op = "randread"
bs_kib = 64
ioprio = "rt/0"

[[job]]
name = "bg"
class = "bg"
op = "randread"
bs_kib = 512
depth = 1
ioprio = "idle"

[sweep]
key = "bg.bs_kib"
values = [4, 512]

[[variant]]
name = "none"
knobs = { scheduler = "none", "queue/nr_requests" = 64 }
"#;

fn refusal(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from} is not in the workload");
    match Spec::parse(&GOOD.replace(from, to)) {
        Ok(_) => panic!("{to} was accepted"),
        Err(error) => error.0,
    }
}

#[test]
fn the_good_one_is_good() {
    let spec = Spec::parse(GOOD).unwrap();
    assert_eq!(spec.workload.job[0].ioprio, Ioprio::RealTime(0));
    assert_eq!(spec.workload.job[0].depth, 1);
    assert_eq!(spec.points(), [4, 512].map(|n| Some(Value::Number(n))));
    assert!(!spec.workload.writes());
}

const BUSY: &str = "[[busy]]\nname = \"task\"\nfifo = 1\nbusy_us = 5000\nidle_us = 3000\n\n[sweep]";
const ARRIVALS: &str = "ioprio = \"rt/0\"\narrivals = \"periodic\"\ngap_us = 4000";

#[test]
fn tasks_that_compute_go_with_arrivals_and_must_rest() {
    let text = GOOD.replace("[sweep]", BUSY);
    let without = Spec::parse(&text).unwrap_err().0;
    assert!(without.contains("busy task: needs a job with arrivals"), "{without}");
    let text = text.replace("ioprio = \"rt/0\"", &format!("{ARRIVALS}\nfifo = 50"));
    let spec = Spec::parse(&text).unwrap();
    let point = &spec.plan(&Selection::default()).unwrap()[0].groups[0].points[0];
    assert_eq!((point.busy[0].fifo, point.jobs[0].fifo), (1, Some(50)));
    for (from, to, says) in [
        ("idle_us = 3000", "idle_us = 0", "must be 100 to 60000000"),
        ("busy_us = 5000", "busy_us = 600_000", "must be 1 to 500000"),
        ("fifo = 1\n", "fifo = 100\n", "must be 1 to 99"),
        ("idle_us = 3000", "idle_us = 3000\nat = [\"x\"]", "busy task: at has x"),
    ] {
        assert!(text.contains(from));
        let error = Spec::parse(&text.replace(from, to)).unwrap_err().0;
        assert!(error.contains(says), "{error}");
    }
    assert!(refusal("ioprio = \"idle\"", "ioprio = \"idle\"\nfifo = 2").contains("with arrivals"));
}

#[test]
fn busy_tasks_run_at_the_points_they_name() {
    let text = GOOD
        .replace("[sweep]", &BUSY.replace("idle_us", "at = [\"both\"]\nidle_us"))
        .replace("ioprio = \"rt/0\"", ARRIVALS)
        .replace(
            "key = \"bg.bs_kib\"\nvalues = [4, 512]",
            "key = \"at\"\nvalues = [\"alone\", \"both\"]",
        );
    let spec = Spec::parse(&text).unwrap();
    let plan = spec.plan(&Selection::default()).unwrap();
    let busy: Vec<usize> = plan[0].groups.iter().map(|group| group.points[0].busy.len()).collect();
    assert_eq!(busy, [0, 1]);
}

#[test]
fn a_variant_may_raise_the_kernels_workers() {
    let from = "name = \"none\"\n";
    let spec = Spec::parse(&GOOD.replace(from, &format!("{from}kworkers_fifo = 60\n"))).unwrap();
    assert_eq!(spec.plan(&Selection::default()).unwrap()[0].kworkers_fifo, Some(60));
    assert!(refusal(from, &format!("{from}kworkers_fifo = 0\n")).contains("must be 1 to 99"));
}

#[test]
fn a_variant_may_use_the_card_as_a_character_device() {
    let text = chardisk_workload();
    let spec = Spec::parse(&text).unwrap();
    assert!(spec.plan(&Selection::default()).unwrap()[0].chardisk);
    let refused = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        Spec::parse(&text.replace(from, to)).unwrap_err().to_string()
    };
    let other = refused("\"chardisk/bg_kib\" = 16", "scheduler = \"k2\"");
    assert!(other.contains("must be \"chardisk/NAME\""), "{other}");
    let block = refused("chardisk = true\n", "");
    assert!(block.contains("\"chardisk/bg_kib\": must be \"scheduler\""), "{block}");
    let deep = refused("ioprio = \"idle\"", "ioprio = \"idle\"\ndepth = 4");
    assert!(deep.contains("job writer has depth = 4: must be 1"), "{deep}");
    let raised = refused("chardisk = true", "chardisk = true\nkworkers_fifo = 60");
    assert!(raised.contains("kworkers_fifo"), "{raised}");
}

/// The guest's test runs the same file; its first variant is left out.
fn chardisk_workload() -> String {
    let text = fs::read_to_string("../../tests/direct/chardisk.toml").unwrap();
    let block = "[[variant]]\nname = \"block\"\nknobs = { scheduler = \"none\" }\n";
    assert!(text.contains(block));
    text.replace(block, "")
}

#[test]
fn published_workloads_are_good() {
    let mut seen = 0;
    for entry in fs::read_dir("../../experiments/workloads").unwrap().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap();
        let spec = Spec::parse(&text).unwrap_or_else(|e| panic!("{}: {e}", entry.path().display()));
        assert_eq!(Some(spec.workload.name.as_str()), entry.path().file_stem().unwrap().to_str());
        seen += 1;
    }
    assert!(seen >= 2);
}

#[test]
fn the_documented_examples_are_good() {
    let page = fs::read_to_string("../../docs/spec/workload-1.md").unwrap();
    let examples: Vec<&str> = page.split("```toml\n").skip(1).collect();
    let blocks: Vec<&str> = examples.iter().filter_map(|rest| rest.split("```").next()).collect();
    let [whole, arrivals, host, filesystem, busy, knob_sweep] = blocks[..] else {
        panic!("{} examples", blocks.len())
    };
    assert_eq!(Spec::parse(whole).unwrap().points().len(), 3);
    // The last example replaces the end of the first.
    let (head, _) = whole.split_once("[sweep]").unwrap();
    let plan = Spec::parse(&format!("{head}{knob_sweep}")).unwrap().plan(&Selection::default());
    assert_eq!(plan.unwrap().iter().map(|variant| variant.groups.len()).sum::<usize>(), 6);
    let (top, _) = whole.split_once("[[job]]").unwrap();
    let timed = format!("{top}{arrivals}\n{busy}\n[[variant]]\nname = \"none\"");
    let timed = Spec::parse(&timed).unwrap();
    assert_eq!(timed.workload.job[0].jitter_us, Some(200));
    assert_eq!(timed.workload.busy[0].busy_us, 5_000);
    let threads = Spec::parse(&format!("{top}{host}\n[[variant]]\nname = \"none\"")).unwrap();
    assert_eq!(threads.points().len(), 3);
    let on_files = whole.replace("ioprio", "file = { mib = 64 }\nioprio");
    assert!(Spec::parse(&format!("{on_files}\n{filesystem}")).unwrap().workload.writes());
}

/// The old text, the new one, and the words that the error must have.
const MISTAKES: &[(&str, &str, &[&str])] = &[
    ("workload/1", "workload/2", &["schema", "workload/2", "workload/1"]),
    ("name = \"w\"", "name = \"W x\"", &["name", "W x", "a-z"]),
    ("name = \"w\"", "nmae = \"w\"", &["nmae", "unknown field", "line 2"]),
    ("seed = 1", "seed = -1", &["seed = -1", "must be 0 to 9223372036854775807"]),
    ("seed = 1", "seed = 1\nsettle_ms = 0", &["settle_ms = 0", "must be 1 to 600000"]),
    ("ios = 10", "", &["length", "ios", "seconds"]),
    ("ios = 10", "ios = 10\nseconds = 1", &["exactly one", "ios", "seconds"]),
    ("ios = 10", "ios = 0", &["ios = 0", "must be 1 to 100000000"]),
    ("ios = 10", "seconds = 86401", &["seconds = 86401", "must be 1 to 86400"]),
    ("class = \"rt\"", "class = \"fast\"", &["class", "fast", "`rt`", "`bg`"]),
    ("op = \"randread\"", "op = \"trim\"", &["op", "trim", "randread"]),
    ("bs_kib = 64", "bs_kib = 65537", &["bs_kib = 65537", "must be 1 to 65536"]),
    ("bs_kib = 64", "bs_kib = \"64\"", &["bs_kib", "line 12", "whole number from 1 to"]),
    ("depth = 1", "offset_mib = -1", &["offset_mib = -1", "must be 0 to"]),
    ("depth = 1", "depth = 4097", &["depth = 4097", "must be 1 to 4096"]),
    ("ioprio = \"rt/0\"", "ioprio = \"rt/8\"", &["ioprio", "rt/8", "\"rt/7\"", "idle"]),
    ("ioprio = \"rt/0\"", "think_us = -1", &["think_us = -1", "must be 0 to 60000000"]),
    ("ioprio = \"rt/0\"", "think_us = 5\ndepth = 2", &["think_us = 5", "depth = 2"]),
    ("ioprio = \"rt/0\"", "think_us = 5\nthink_jitter_us = 6", &["think_jitter_us = 6", "0 to"]),
    ("ioprio = \"idle\"", "think_us = 5\nthink_jitter_us = 1", &["job bg", "think_jitter_us"]),
    ("depth = 1", "processes = 257", &["processes = 257", "must be 1 to 256"]),
    ("ioprio = \"rt/0\"", "processes = 2", &["job rt: processes = 2", "must be 1", "length.ios"]),
    ("key = \"bg.bs_kib\"", "key = \"bg.processes\"", &["sweep.key", "bg.processes", "JOB.KEY"]),
    ("ioprio = \"rt/0\"", "gap_us = 5", &["job rt", "gap_us", "only allowed with arrivals"]),
    ("ioprio = \"rt/0\"", "sync = \"dsync\"", &["job rt", "sync", "only allowed with arrivals"]),
    (
        "ioprio = \"rt/0\"",
        "arrivals = \"periodic\"\ngap_us = 9\nsync = \"dsync\"",
        &["job rt", "sync: only for writes to the device itself"],
    ),
    ("ioprio = \"rt/0\"", "arrivals = \"weekly\"", &["arrivals", "weekly", "`periodic`"]),
    ("ioprio = \"rt/0\"", "arrivals = \"poisson\"", &["poisson", "needs gap_us"]),
    (
        "ioprio = \"rt/0\"",
        "arrivals = \"poisson\"\ngap_us = 9\njitter_us = 1",
        &["jitter_us is for arrivals = \"periodic\", not \"poisson\""],
    ),
    (
        "ioprio = \"rt/0\"",
        "arrivals = \"periodic\"\ngap_us = 9\njitter_us = 5",
        &["jitter_us = 5", "0 to half of gap_us = 9"],
    ),
    (
        "ioprio = \"rt/0\"",
        "arrivals = \"periodic\"\ngap_us = 9\ngap_us_min = 5",
        &["gap_us_min is for arrivals = \"sporadic\""],
    ),
    (
        "ioprio = \"rt/0\"",
        "arrivals = \"sporadic\"\ngap_us = 9",
        &["\"sporadic\" needs gap_us_min"],
    ),
    (
        "ioprio = \"rt/0\"",
        "arrivals = \"sporadic\"\ngap_us = 9\ngap_us_min = 10",
        &["gap_us_min = 10", "0 to gap_us = 9"],
    ),
    ("ioprio = \"rt/0\"", "arrivals = \"poisson\"\ngap_us = 9\non_ms = 5", &["on_ms needs off_ms"]),
    (
        "ioprio = \"rt/0\"",
        "arrivals = \"poisson\"\ngap_us = 9\nlate_us = 5",
        &["late_us needs late_every_ms"],
    ),
    ("ioprio = \"rt/0\"", "thread_arrivals = 5", &["thread_arrivals: only allowed with arrivals"]),
    (
        "ioprio = \"rt/0\"",
        "arrivals = \"poisson\"\ngap_us = 9\nthink_us = 5",
        &["think_us = 5", "only one"],
    ),
    (
        "ioprio = \"rt/0\"",
        "arrivals = \"poisson\"\ngap_us = 9\ndepth = 2",
        &["depth = 2", "depth = 1"],
    ),
    (
        "ioprio = \"rt/0\"",
        "arrivals = \"poisson\"\ngap_us = 9\nprocesses = 2",
        &["processes = 2", "processes = 1"],
    ),
    (
        "ioprio = \"idle\"",
        "arrivals = \"poisson\"\ngap_us = 9",
        &["job bg", "the first job of class \"rt\" must have arrivals"],
    ),
    ("ioprio = \"rt/0\"", "read_percent = 50", &["read_percent", "randrw", "randread"]),
    ("name = \"bg\"", "name = \"rt\"", &["job.name", "rt", "twice"]),
    ("key = \"bg.bs_kib\"", "key = \"bg.bs\"", &["sweep.key", "bg.bs", "JOB.KEY"]),
    ("key = \"bg.bs_kib\"", "key = \"xx.bs_kib\"", &["sweep.key", "xx.bs_kib"]),
    ("key = \"bg.bs_kib\"", "key = \"bg.name\"", &["sweep.key", "bg.name"]),
    ("key = \"bg.bs_kib\"", "key = \"knobs\"", &["sweep.key", "knobs", "$point"]),
    ("values = [4, 512]", "values = []", &["sweep.values", "at least one"]),
    ("values = [4, 512]", "values = [4, 4]", &["sweep.values", "twice"]),
    ("values = [4, 512]", "values = [4, 0]", &["bg.bs_kib = 0", "0 is out of range", "65536"]),
    ("scheduler = \"none\"", "\"../x\" = 1", &["variant none", "../x", "iosched/NAME"]),
    ("scheduler = \"none\"", "\"queue/../ro\" = 1", &["queue/../ro", "queue/NAME"]),
    ("scheduler = \"none\"", "scheduler = \"$point\"", &["$point", "[sweep]", "knobs"]),
    ("scheduler = \"none\"", "scheduler = 1.5", &["scheduler", "line", "whole number or a string"]),
    ("[[variant]]", "[[variant]]\noptional = [\"x\"]", &["optional", "x", "not one of its knobs"]),
];

#[test]
fn mistakes_are_refused_with_key_value_and_what_is_allowed() {
    for (from, to, parts) in MISTAKES {
        let said = refusal(from, to);
        for part in *parts {
            assert!(said.contains(part), "{to}: {part} is not in: {said}");
        }
    }
}

#[test]
fn a_selection_keeps_order_and_position() {
    let spec = Spec::parse(GOOD).unwrap();
    let selection = Selection { variants: vec!["none".into()], points: vec!["512".into()] };
    let plan = spec.plan(&selection).unwrap();
    let point = &plan[0].groups[0].points[0];
    assert_eq!((point.index, point.value.clone()), (1, Some(Value::Number(512))));
    assert_eq!(point.jobs[1].bs_kib, 512);
    for (variants, points, missing) in [
        (vec!["bfq".to_string()], vec![], "--variant bfq"),
        (vec![], vec!["5".into()], "--point 5"),
    ] {
        let error = spec.plan(&Selection { variants, points }).unwrap_err();
        assert!(error.0.contains(missing), "{error}");
    }
}

#[test]
fn points_share_a_process_as_long_as_they_share_the_knobs() {
    let plan = Spec::parse(GOOD).unwrap().plan(&Selection::default()).unwrap();
    assert_eq!(plan[0].groups.len(), 1);
    let knobs = GOOD.replace("\"bg.bs_kib\"", "\"knobs\"").replace("= 64 }", "= \"$point\" }");
    let plan = Spec::parse(&knobs).unwrap().plan(&Selection::default()).unwrap();
    let set: Vec<_> = plan[0].groups.iter().map(|g| &g.knobs["queue/nr_requests"]).collect();
    assert_eq!(set, [&Value::Number(4), &Value::Number(512)]);
}

#[test]
fn points_with_arrivals_run_alone() {
    let text = GOOD.replace("\"rt/0\"", "\"rt/0\"\narrivals = \"poisson\"\ngap_us = 9");
    let plan = Spec::parse(&text).unwrap().plan(&Selection::default()).unwrap();
    assert_eq!(plan[0].groups.len(), 2, "both have the same knobs");
}

#[test]
fn processes_can_be_swept() {
    let text = GOOD
        .replace("depth = 1", "processes = 1")
        .replace("bg.bs_kib", "bg.processes")
        .replace("[4, 512]", "[1, 128]");
    let plan = Spec::parse(&text).unwrap().plan(&Selection::default()).unwrap();
    let points = &plan[0].groups[0].points;
    let counts: Vec<_> = points.iter().map(|point| point.jobs[1].processes).collect();
    assert_eq!((counts, points[0].jobs[0].processes), (vec![1, 128], 1));
    // One fio holds memory for the processes of all its points.
    let many = Spec::parse(&text.replace("[1, 128]", "[120, 121, 256, 255]")).unwrap();
    let plan = many.plan(&Selection::default()).unwrap();
    let groups: Vec<_> = plan[0].groups.iter().map(|group| group.points.len()).collect();
    assert_eq!(groups, [3, 1]);
    let error = Spec::parse(&text.replace("128", "257")).unwrap_err().0;
    assert!(error.contains("bg.processes = 257"), "{error}");
}

#[test]
fn a_job_of_several_processes_may_end_with_the_time_but_not_with_its_ios() {
    let several = GOOD.replace("ioprio = \"rt/0\"", "ioprio = \"rt/0\"\nprocesses = 2");
    assert!(Spec::parse(&several.replace("ios = 10", "seconds = 1")).is_ok());
    let counted = several.replace("\"rt\"\nop", "\"bg\"\nop");
    let error = Spec::parse(&counted).unwrap_err().0;
    assert!(error.contains("job rt: processes = 2: must be 1"), "no real-time job: {error}");
}

#[test]
fn without_real_time_the_first_job_is_counted() {
    let text = GOOD.replace("\"rt\"\nop", "\"bg\"\nop");
    let plan = Spec::parse(&text).unwrap().plan(&Selection::default()).unwrap();
    assert_eq!(plan[0].groups[0].points[0].main_job(), Some(0));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        let _ = Spec::parse(&text);
    }

    #[test]
    fn a_changed_character_is_read_or_refused(at in 0..GOOD.len(), to in "\\PC") {
        let mut text = GOOD.to_string();
        text.replace_range(at..at + 1, &to);
        if let Ok(spec) = Spec::parse(&text) {
            spec.plan(&Selection::default()).unwrap();
        }
    }

    #[test]
    fn values_survive_the_way_through_sysfs(number in any::<i64>(), word in "[a-z-]{1,9}") {
        prop_assert_eq!(Value::from_text(&number.to_string()), Value::Number(number));
        prop_assert_eq!(Value::from_text(&word), Value::Word(word));
    }
}

fn with(settings: &[&str]) -> Result<Spec, String> {
    let settings: Result<Vec<Setting>, _> = settings.iter().map(|text| text.parse()).collect();
    Spec::parse_with(GOOD, &settings.map_err(|error| error.to_string())?)
        .map_err(|error| error.to_string())
}

#[test]
fn values_can_be_set_from_outside() {
    let spec = with(&["rt.op=randwrite", "rt.bs_kib=4", "length.ios=99"]).unwrap();
    assert!(spec.workload.writes());
    assert_eq!((spec.workload.job[0].bs_kib, spec.workload.length.ios), (4, Some(99)));
    let written = spec.to_json().unwrap();
    assert_eq!(written["job"][0]["op"], "randwrite", "the record has the changed settings");
    for (settings, says) in [
        (["rt.op"], "must be KEY=VALUE"),
        (["rt.op=eat"], "with rt.op = eat"),
        (["rt.bs_kib=0"], "with rt.bs_kib = 0"),
        (["rt.depth=2"], "a key that this job sets"),
        (["fg.op=read"], "cannot set \"fg.op\""),
        (["length.seconds=1"], "a key that the file has"),
        (["knobs=1"], "cannot set \"knobs\""),
    ] {
        let error = with(&settings).map(|_| ()).unwrap_err();
        assert!(error.contains(says), "{error} lacks {says}");
    }
}

#[test]
fn the_length_can_be_swept() {
    let text = GOOD.replace("bg.bs_kib", "length.ios").replace("[4, 512]", "[20, 30]");
    let plan = Spec::parse(&text).unwrap().plan(&Selection::default()).unwrap();
    let ios: Vec<_> = plan[0].groups[0].points.iter().map(|point| point.length.ios).collect();
    assert_eq!(ios, [Some(20), Some(30)]);
    assert!(refusal("bg.bs_kib", "length.seconds").contains("length.KEY"));
    assert!(refusal("name = \"bg\"", "name = \"length\"").contains("is taken by [length]"));
}

const HOST: &str = r#"schema = "steadyio.workload/1"
name = "w"
seed = 1
length = { ios = 10 }

[host]
cores = 2
pre_at_once = 1
pre_us = 700
post_us = 300

[[job]]
name = "rt"
class = "rt"
op = "randread"
bs_kib = 64
threads = 4

[[variant]]
name = "none"
"#;

#[test]
fn a_host_reaches_every_point() {
    let swept = format!("{HOST}\n[sweep]\nkey = \"host.pre_us\"\nvalues = [0, 5]\n");
    let settings = ["host.cores=3".parse().unwrap()];
    let plan = Spec::parse_with(&swept, &settings).unwrap().plan(&Selection::default()).unwrap();
    let hosts: Vec<_> = plan[0].groups[0].points.iter().filter_map(|point| point.host).collect();
    assert_eq!(
        hosts.iter().map(|host| (host.cores, host.pre_us)).collect::<Vec<_>>(),
        [(3, 0), (3, 5)]
    );
}

/// The replaced text, and the new one.
type Change = (&'static str, &'static str);

#[test]
fn what_does_not_go_with_a_host_is_refused() {
    let file = "bs_kib = 64\nfile = { mib = 1 }";
    let filesystem = "[filesystem]\ntype = \"ext4\"\nmib = 64\n[[job]]";
    let other = "[[job]]\nname = \"bg\"\nclass = \"bg\"\nop = \"read\"\nbs_kib = 4\n[[variant]]";
    let mistakes: &[(&[Change], &[&str])] = &[
        (&[("cores = 2", "cores = 0")], &["cores = 0", "must be 1 to 64"]),
        (&[("cores = 2", "cores = 2\nspeed = 1")], &["speed", "unknown field"]),
        (&[("pre_us = 700", "pre_us = 1000001")], &["pre_us = 1000001", "must be 0 to 1000000"]),
        (&[("at_once = 1", "at_once = 3")], &["host.pre_at_once = 3", "1 to cores = 2"]),
        (
            &[("pre_us = 700", "pre_us = 700\ncommand_us = 8"), ("randread", "randrw")],
            &["host.command_us = 8", "mixes reads and writes"],
        ),
        (&[("threads = 4", "threads = 257")], &["threads = 257", "must be 1 to 256"]),
        (&[("threads = 4", "depth = 4")], &["depth", "use threads"]),
        (&[("threads = 4", "processes = 4")], &["processes", "use threads"]),
        (&[("threads = 4", "offset_mib = 4")], &["offset_mib", "not allowed with a [host]"]),
        (&[("threads = 4", "think_us = 4")], &["think_us", "not allowed with a [host]"]),
        (&[("threads = 4", "ioprio = \"rt/0\"")], &["ioprio", "not allowed with a [host]"]),
        (&[("ios = 10", "seconds = 10")], &["length.seconds", "in ios"]),
        (&[("[[variant]]", other)], &["[[job]]", "2 times", "one job"]),
        (&[("[[job]]", filesystem), ("bs_kib = 64", file)], &["[filesystem]", "[host]"]),
        (&[("name = \"rt\"", "name = \"host\"")], &["host", "is taken by [host]"]),
    ];
    for (changes, parts) in mistakes {
        let text = changes.iter().fold(HOST.to_string(), |text, (from, to)| {
            assert!(text.contains(from), "{from} is not in the workload");
            text.replacen(from, to, 1)
        });
        let said = Spec::parse(&text).map(|_| ()).unwrap_err().0;
        for part in *parts {
            assert!(said.contains(part), "{changes:?}: {part} is not in: {said}");
        }
    }
    assert!(refusal("depth = 1", "threads = 2").contains("only allowed with a [host]"));
}
