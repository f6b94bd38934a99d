// SPDX-License-Identifier: MIT OR Apache-2.0
//! Manual pages and completions name every command.

use std::fs;
use std::process::Command;

const STEADY: &str = env!("CARGO_BIN_EXE_steady");

fn said(arguments: &[&str]) -> String {
    let output = Command::new(STEADY).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Those in `steady --help`, but for `help` itself.
fn commands() -> Vec<String> {
    let help = said(&["--help"]);
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = list.take_while(|line| !line.is_empty());
    let names = names.map(|line| line.split_whitespace().next().unwrap().to_owned());
    names.filter(|name| name != "help").collect()
}

#[test]
fn each_command_has_a_page_with_its_options_and_exit_statuses() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("man1");
    said(&["man", directory.to_str().unwrap()]);
    let commands = commands();
    assert!(commands.len() > 10, "{commands:?}");
    for command in commands {
        let page = fs::read_to_string(directory.join(format!("steady-{command}.1"))).unwrap();
        for section in ["SYNOPSIS", "\"EXIT STATUS\"", "EXAMPLES", "\"SEE ALSO\""] {
            let is_there = page.lines().any(|line| line == format!(".SH {section}"));
            assert!(
                is_there || (command == "man" && section == "EXAMPLES"),
                "{command}: {section}"
            );
        }
    }
    let page = fs::read_to_string(directory.join("steady-store.1")).unwrap();
    assert!(!page.contains("help(1)"), "it names a page that is not there: {page}");
    let page = fs::read_to_string(directory.join("steady-store-put.1")).unwrap();
    assert!(page.contains("\\fB\\-\\-size\\fR\\fI SIZE"), "{page}");
}

#[test]
fn each_shell_completes_each_command() {
    for shell in ["bash", "zsh", "fish"] {
        let text = said(&["completions", shell]);
        for command in commands() {
            assert!(text.contains(&command), "{shell}: {command}");
        }
    }
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let output = Command::new(STEADY).args(["man", "/proc/none/man1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/proc/none/man1"));
}
