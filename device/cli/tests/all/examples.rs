// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady examples`: what packages install is listed and printed.

use std::fs;
use std::process::{Command, Output};

use crate::common::valid_json;

const SCHEMA: &str = "examples-1.schema.json";
const INSTALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/install-share");

fn steady(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_steady")).args(arguments).output().unwrap()
}

#[test]
fn installed_examples_are_listed_printed_and_accepted() {
    let dir = tempfile::tempdir().unwrap();
    assert!(Command::new(INSTALL).arg(dir.path()).status().unwrap().success());
    let folder = dir.path().join("share/steadyio/examples");
    let folder = folder.to_str().unwrap();
    let list = String::from_utf8(steady(&["examples", "--dir", folder]).stdout).unwrap();
    assert!(list.contains("robot") && list.contains("tasks"), "{list}");
    let json = valid_json(&steady(&["examples", "--dir", folder, "--json"]), SCHEMA);
    let examples = json["examples"].as_array().unwrap();
    assert!(examples.len() > 20, "{list}");
    for example in examples {
        let name =
            format!("{}/{}", example["kind"].as_str().unwrap(), example["name"].as_str().unwrap());
        let printed = steady(&["examples", &name, "--dir", folder]);
        let file = fs::read(example["file"].as_str().unwrap()).unwrap();
        assert!(printed.status.success() && printed.stdout == file, "{name}");
        assert_ne!(example["title"], "", "{name}");
        if example["kind"] == "workloads" {
            let spec = steady(&["bench", example["file"].as_str().unwrap(), "--print-spec"]);
            assert!(spec.status.success(), "{name}: {spec:?}");
        }
    }
    let unknown = steady(&["examples", "none", "--dir", folder]);
    assert_eq!(unknown.status.code(), Some(2));
    let said = String::from_utf8(unknown.stderr).unwrap();
    assert!(said.contains("NAME none: must be one of") && said.contains("robot"), "{said}");
    let (tasks, card) = (
        format!("{folder}/tasks/robot.toml"),
        format!("{folder}/devices/foresee-ncemad9d-usb.toml"),
    );
    assert!(steady(&["bound", &card, &tasks]).status.success());
}

#[test]
fn help_that_cannot_be_written_fails() {
    for line in [&["--help"][..], &["bench", "--help"], &["--version"], &["help", "watch"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = command.args(line).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{line:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("standard output: No space left on device"), "{line:?}: {said}");
    }
}

#[test]
fn manual_pages_name_installed_documents() {
    let dir = tempfile::tempdir().unwrap();
    assert!(steady(&["man", dir.path().to_str().unwrap()]).status.success());
    let page = fs::read_to_string(dir.path().join("steady-bench.1")).unwrap();
    assert!(page.contains("/usr/share/doc/steadyio/docs/spec/workload\\-1.md"), "{page}");
}
