// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady model` as a user runs it. Its reference page must show its output.

use std::fs::{self, File};
use std::process::{Command, Output};

use serde_json::Value;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Arguments as on a command line, run in the project's folder.
fn model(arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    command.current_dir(ROOT).arg("model").args(arguments.split(' ')).output().unwrap()
}

fn printed(arguments: &str) -> String {
    let output = model(arguments);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_reference_page_shows_what_its_commands_print() {
    let page = fs::read_to_string(format!("{ROOT}/docs/reference/steady-model.md")).unwrap();
    let mut shown = 0;
    for block in page.split("```\n$ steady model ").skip(1) {
        let (arguments, rest) = block.split_once('\n').unwrap();
        let (expected, _) = rest.split_once("```").unwrap();
        assert_eq!(printed(arguments), expected, "of: steady model {arguments}");
        shown += 1;
    }
    assert_eq!(shown, 1, "examples on the page");
}

#[test]
fn a_measured_speed_above_the_limits_is_said_to_disprove_what_they_assume() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("spans.toml");
    let said = |measured: f64| {
        let entry = "name = 'read'\nop = 'read'\nsize_bytes = 4096\npre_us = 10.0\ndevice_us = 330.0\npost_us = 5.0";
        let head = "schema = 'steadyio.spans/1'\nname = 'loop'\n[[spans]]";
        fs::write(&file, format!("{head}\n{entry}\nmeasured_mib_s = {measured}\n")).unwrap();
        printed(file.to_str().unwrap())
    };
    let disproved = "read: measured is above many cores: a stage serves several requests at a time";
    assert!(said(138.0).contains(disproved), "{}", said(138.0));
    assert!(!said(11.8).contains("measured is above"), "{}", said(11.8));
}

#[test]
fn json_has_what_the_tables_have() {
    let text = printed("experiments/spans/s5.toml --depth 4 --requests 100 --json");
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["schema"], "steadyio.model/1");
    let random_read = &document["predictions"][4];
    assert_eq!(random_read["name"], "64KB random read");
    assert_eq!(random_read["spans"][0], serde_json::json!({ "span": "pre", "us": 737.0 }));
    assert_eq!(random_read["queue"]["requests"], 100);
    assert_eq!(random_read["queue"]["many_cores"]["us"], 100.0 * 737.0 + 524.0 + 383.0);
    assert_eq!(random_read["halved"][0]["span"], "pre");
}

#[test]
fn numbers_on_the_command_line_are_as_good_as_a_file() {
    let of = |arguments: &str| -> Value { serde_json::from_str(&printed(arguments)).unwrap() };
    let file = of("experiments/spans/s5.toml --json");
    let line = of("--size 64K --pre-us 737 --device-us 524 --post-us 383 --json");
    let parts = of("--size 64K --submission-us 700 --block-us 37 --device-us 524 \
                    --post-us 383 --json");
    for same in ["limits_mib_s", "queue", "software_percent", "total_us"] {
        assert_eq!(line["predictions"][0][same], file["predictions"][4][same], "{same}");
        assert_eq!(parts["predictions"][0][same], file["predictions"][4][same], "{same}");
    }
}

#[test]
fn spans_come_from_a_pipe_as_well() {
    let from = |file: &str, arguments: &[&str]| {
        let file = File::open(format!("{ROOT}/{file}")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
        command.args(["model", "-"]).args(arguments).stdin(file).output().unwrap()
    };
    let spans = "experiments/spans/s5.toml";
    assert_eq!(String::from_utf8(from(spans, &[]).stdout).unwrap(), printed(spans));
    let wrong = from("docs/spec/recording-1.schema.json", &[]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8(wrong.stderr).unwrap().starts_with("steady: standard input: "));
}

#[test]
fn an_output_that_is_full_is_named() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    command.current_dir(ROOT).args(["model", "experiments/spans/s5.toml"]);
    let output = command.stdout(File::create("/dev/full").unwrap()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let says = "steady: standard output: No space left on device (os error 28)\n";
    assert_eq!(String::from_utf8(output.stderr).unwrap(), says);
}

#[test]
fn rank_puts_first_what_helps_most_in_that_case() {
    let second = |rank: &str| {
        let text = printed(&format!("experiments/spans/s5.toml --rank {rank} --json"));
        let document: Value = serde_json::from_str(&text).unwrap();
        document["predictions"][4]["halved"][1]["span"].clone()
    };
    assert_eq!(second("single-thread"), "device");
    assert_eq!(second("one-core"), "post");
}

#[test]
fn wrong_input_is_named_with_what_is_allowed() {
    for (arguments, says) in [
        ("--depth 4", "give a file of spans, or --size,"),
        ("--pre-us 4", "give a file of spans, or --size,"),
        ("--size 4x --pre-us 4", "must be a whole number, with K"),
        ("--size 2G --pre-us 4 --device-us 1 --post-us 1", "must be 1 to 1073741824"),
        ("--size 4K --pre-us 4 --post-us 1", "device_us is missing"),
        (
            "--size 4K --pre-us 4 --device-us -5 --post-us 1",
            "device_us = -5: must be 0 to 60000000",
        ),
        ("experiments/spans/s5.toml --depth 0", "depth = 0: must be 1 to 65536"),
        ("experiments/spans/s5.toml --pre-us 4", "cannot be used with"),
        ("experiments/no-such-file", "experiments/no-such-file: No such file"),
        ("README.md", "README.md: TOML parse error at line"),
    ] {
        let output = model(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(says), "{says} is not in: {said}");
    }
}
