// SPDX-License-Identifier: MIT OR Apache-2.0
//! The C example, built as its first lines say against an installed library, and a C++ program;
//! and what they recorded.

use std::env;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rustix::fs::{FlockOperation, flock};
use steadyio_testing::recording::messages;

const EXAMPLE: &str = "examples/record.c";
const STEPS: u64 = 300;

pub fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{said}", output.status);
    output
}

/// Installs the libraries that cargo built for this test.
pub fn install(prefix: &Path) {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let program = env::current_exe().unwrap();
    let built = program.parent().unwrap();
    // A build that runs meanwhile may write them again.
    let cargo = File::open(built.join("../.cargo-lock")).unwrap();
    flock(&cargo, FlockOperation::LockShared).unwrap();
    let mut script = Command::new(repository.join("scripts/install-capi"));
    run(script.arg("--built").arg(built).arg("--prefix").arg(prefix));
}

pub fn pkg_config(prefix: &Path, arguments: &[&str]) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    command.args(arguments).arg("steadyio").env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    let flags = String::from_utf8(run(&mut command).stdout).unwrap();
    flags.split_whitespace().map(String::from).collect()
}

pub fn compile(prefix: &Path, name: &str, source: &str, flags: &[String]) -> PathBuf {
    let program = prefix.join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let is_cpp = source.extension().is_some_and(|extension| extension == "cpp");
    let (compiler, standard) = if is_cpp { ("c++", "-std=c++17") } else { ("cc", "-std=c11") };
    let strict = [standard, "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"];
    run(Command::new(compiler).args(strict).arg(source).args(flags).arg("-o").arg(&program));
    program
}

fn record(prefix: &Path, program: &Path, dir: &Path) -> String {
    let mut command = Command::new(program);
    command.arg(dir).arg(STEPS.to_string()).env("LD_LIBRARY_PATH", prefix.join("lib"));
    String::from_utf8(run(&mut command).stdout).unwrap()
}

/// Every record of a topic, in the order of the recording.
fn read(dir: &Path, topic: &str) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    for message in messages(dir).into_iter().filter(|message| message.channel.topic == topic) {
        let schema = message.channel.schema.as_ref();
        assert_eq!(schema.map(|schema| schema.name.as_str()), schema_of(topic));
        records.push(message.data.into_owned());
    }
    records
}

fn schema_of(topic: &str) -> Option<&'static str> {
    (topic == "/joint").then_some("Joint")
}

#[test]
fn what_c_and_cpp_record_is_read_back_by_the_official_reader() {
    let prefix = tempfile::tempdir().unwrap();
    let prefix = prefix.path();
    install(prefix);
    let shared = pkg_config(prefix, &["--cflags", "--libs"]);
    let mut fixed = pkg_config(prefix, &["--cflags", "--libs", "--static"]);
    let library = prefix.join("lib/libsteadyio.a").display().to_string();
    for flag in fixed.iter_mut().filter(|flag| *flag == "-lsteadyio") {
        flag.clone_from(&library);
    }
    let programs = [
        ("shared", EXAMPLE, &shared),
        ("static", EXAMPLE, &fixed),
        ("c++", "tests/from_cpp.cpp", &shared),
    ];
    for (name, source, flags) in programs {
        let dir = prefix.join(format!("{name}-recording"));
        let said = record(prefix, &compile(prefix, name, source, flags), &dir);
        let of = |topic| format!("{topic}: received {STEPS}, durable {STEPS}, lost 0\n");
        assert!(said.starts_with(&(of("/joint") + &of("/frames"))), "{said}");
        for (step, text) in (0..STEPS).zip(read(&dir, "/joint")) {
            let angle = step as f64 / 1_000.0;
            let expected = format!("{{\"step\":{step},\"angle\":{angle:.3}}}");
            assert_eq!(String::from_utf8(text).unwrap(), expected);
        }
        let frames = read(&dir, "/frames");
        assert_eq!(frames.len() as u64, STEPS);
        for (step, frame) in frames.iter().enumerate() {
            assert_eq!(*frame, vec![step as u8; 512]);
        }
    }
}

#[test]
fn the_example_says_what_is_wrong() {
    let prefix = tempfile::tempdir().unwrap();
    let prefix = prefix.path();
    install(prefix);
    let program = compile(prefix, "record", EXAMPLE, &pkg_config(prefix, &["--cflags", "--libs"]));
    let mut command = Command::new(program);
    command.args(["/proc/nowhere", "1"]).env("LD_LIBRARY_PATH", prefix.join("lib"));
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("record: start: /proc/nowhere: No such file"), "{said}");
}

#[test]
fn append_from_c_makes_no_system_call() {
    let prefix = tempfile::tempdir().unwrap();
    let prefix = prefix.path();
    install(prefix);
    let flags = pkg_config(prefix, &["--cflags", "--libs"]);
    let program = compile(prefix, "append_only", "tests/append_only.c", &flags);
    let append = |more: &[&str]| {
        let mut command = Command::new(&program);
        command.arg(prefix.join("recording")).args(more);
        command.env("LD_LIBRARY_PATH", prefix.join("lib"));
        String::from_utf8(run(&mut command).stdout).unwrap()
    };
    // Taken, ring full and too long.
    assert_eq!(append(&[]), "statuses seen: 0x7\n");
    assert_eq!(append(&["canary"]), "killed by signal 9\n");
}
