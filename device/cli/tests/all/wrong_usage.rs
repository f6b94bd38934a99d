// SPDX-License-Identifier: MIT OR Apache-2.0
//! A wrong command line or file leads to an exit status, and to a message that names the option or
//! file, the value and the allowed ones. Each line runs without root and without a device.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

const WORKLOAD: &str = "schema = \"steadyio.workload/1\"\nname = \"w\"\nseed = 1\n[length]\nios = 10\n\
    [[job]]\nname = \"rt\"\nclass = \"rt\"\nop = \"randread\"\nbs_kib = 4\n\
    [[variant]]\nname = \"as-is\"\n";

/// A command line, its exit status, and words that the message has.
type Wrong = (&'static str, i32, &'static [&'static str]);

const COMMANDS: &[Wrong] = &[
    ("nonsense", 2, &["'nonsense'", "--help"]),
    ("--nonsense", 2, &["'--nonsense'"]),
    ("", 2, &["Commands:"]),
    ("completions", 2, &["<SHELL>"]),
    ("completions tcsh", 2, &["'tcsh'", "<SHELL>", "bash", "zsh"]),
    ("man", 2, &["<DIR>"]),
    ("man /proc/none", 1, &["/proc/none"]),
    ("examples --dir empty", 1, &["empty: no examples", "install the package", "--dir"]),
    ("examples robot --json", 2, &["--json", "cannot be used with"]),
    ("model", 2, &["a file of spans", "--size"]),
    ("model /no/file", 2, &["/no/file: No such file"]),
    ("model garbage", 2, &["garbage", "line 1"]),
    ("model --depth 0", 2, &["a file of spans"]),
    ("model --size 1K --pre-us 1 --device-us 1 --post-us 1 --depth 0", 2, &["--depth = 0"]),
];

const APPLY_AND_BOUND: &[Wrong] = &[
    ("apply", 2, &["--disk <NAME>", "<PROFILE>", "<TASKS>"]),
    ("apply /no/file t --disk mmcblk79", 2, &["/no/file: No such file"]),
    ("apply garbage t --disk mmcblk79", 2, &["garbage", "line 1"]),
    ("apply p --rt-block-us 0 --disk mmcblk79", 2, &["'0'", "--rt-block-us", "1..=1000000"]),
    ("apply p --rt-block-us x --disk mmcblk79", 2, &["'x'", "--rt-block-us", "a whole number"]),
    ("apply p --rt-block-us= --disk mmcblk79", 2, &["--rt-block-us", "a whole number"]),
    ("apply --remove", 2, &["--disk <NAME>"]),
    ("apply --remove --disk a/b", 2, &["'a/b'", "--disk", "mmcblk0"]),
    ("apply --remove --disk /dev/null", 2, &["--disk", "/dev/null", "not a block device"]),
    ("apply p t --remove --disk mmcblk79", 2, &["--remove", "cannot be used with"]),
    ("bound", 2, &["<DEVICE>", "<TASKS>"]),
    ("bound /no/file t", 2, &["/no/file: No such file"]),
    ("bound garbage t", 2, &["garbage", "line 1"]),
    ("bound d t --overrun 5", 2, &["'5'", "--overrun", "a whole number with ns, us, ms"]),
    ("bound d t --overrun x", 2, &["'x'", "--overrun", "a whole number with ns, us, ms"]),
];

const BENCH_AND_TUNE: &[Wrong] = &[
    ("bench", 2, &["<SPEC.toml>"]),
    ("bench w.toml", 2, &["--device <DEV>"]),
    ("bench /no/file --device mmcblk79", 2, &["/no/file: No such file"]),
    ("bench garbage --device mmcblk79", 2, &["garbage", "line 1"]),
    ("bench w.toml --device mmcblk79", 2, &["mmcblk79: no such block device"]),
    ("bench w.toml --device /dev/null", 2, &["/dev/null: is a character device", "not a block"]),
    ("bench w.toml --device w.toml", 2, &["not a block device", "losetup"]),
    ("bench w.toml --print-spec --set rt.bs=4q", 2, &["rt.bs", "4q", "this job sets: bs_kib, op"]),
    ("bench w.toml --print-spec --set rt.bs_kib=4q", 2, &["rt.bs_kib", "4q", "1 to 65536"]),
    ("bench w.toml --print-spec --set rt.bs_kib=0", 2, &["rt.bs_kib", "0", "1 to 65536"]),
    ("bench w.toml --print-spec --set rt.op=foo", 2, &["rt.op", "foo", "randread"]),
    ("bench w.toml --print-spec --set no.bs_kib=4", 2, &["no.bs_kib", "JOB is one of: rt"]),
    ("bench w.toml --print-spec --set length.iso=4", 2, &["length.iso", "the file has: ios"]),
    ("bench w.toml --print-spec --set length.ios=0", 2, &["length.ios", "1 to 100000000"]),
    ("bench w.toml --print-spec --set x", 2, &["--set", "\"x\"", "KEY=VALUE"]),
    ("bench w.toml --print-spec --check", 2, &["--print-spec", "cannot be used with"]),
    ("tune", 2, &["<DEV>", "<SPEC.toml>", "--tail-max"]),
    ("tune mmcblk79 w.toml", 2, &["--tail-max", "--throughput-min", "--bound"]),
    ("tune mmcblk79 w.toml --tail-max 1ms", 2, &["mmcblk79: no such block device"]),
    ("tune mmcblk79 w.toml --tail-max 0%", 2, &["--tail-max", "'0%'", "above 0 and at most 100"]),
    ("tune mmcblk79 w.toml --tail-max 5", 2, &["--tail-max", "'5'", "500us"]),
    ("tune mmcblk79 w.toml --tail-max 5% --knob x", 2, &["--knob", "'x'", "inflight_max"]),
    ("tune mmcblk79 w.toml --tail-max 5% --quantile 100", 2, &["--quantile", "50 to 99.999"]),
    ("tune mmcblk79 w.toml --tail-max 5% --near 100", 2, &["--near", "from 0 to below 100"]),
    ("tune mmcblk79 w.toml --tail-max 5% --with x", 2, &["--with", "'x'", "KEY=VALUE"]),
];

const DEVICES: &[Wrong] = &[
    ("doctor", 2, &["<DEVICE>"]),
    ("doctor mmcblk79", 2, &["mmcblk79: no such block device"]),
    ("doctor empty/", 2, &["empty/: is a directory", "not a block device"]),
    ("probe", 2, &["<DEV>"]),
    ("probe mmcblk79 --duration 1s", 2, &["--duration", "'1s'", "10s to 12h"]),
    ("probe mmcblk79 --duration x", 2, &["--duration", "'x'", "a whole number with ns"]),
    ("probe mmcblk79 --quick --duration 20s", 2, &["--quick", "cannot be used with"]),
    ("probe mmcblk79 --blank", 2, &["--write <REGION|FILE>"]),
    ("probe --compare a", 2, &["--compare <OLD> <NEW>", "2 values"]),
    ("probe --compare /no/a /no/b", 2, &["/no/a: No such file"]),
    ("probe mmcblk79 --json", 2, &["--json", "cannot be used with"]),
    ("probe --verdict p", 2, &["--rate <KIB_S>"]),
    ("probe --rate 50", 2, &["--verdict <PROFILE>"]),
    ("probe --verdict /no/file --rate 50", 2, &["/no/file: No such file"]),
    ("probe --verdict p --rate 0", 2, &["--rate", "'0'", "1..=16777216"]),
    ("probe --verdict p --rate 50 --block 0", 2, &["--block", "'0'", "1..=65536"]),
    ("direct", 2, &["Commands:"]),
    ("direct info", 2, &["<DEVICE>"]),
    ("direct info garbage", 2, &["garbage: is a regular file", "losetup"]),
    ("direct info /dev/null", 2, &["/dev/null", "not a chario card"]),
    ("direct read mmcblk79 x --offset 1q", 2, &["--offset", "'1q'", "K, M, G"]),
    ("direct write mmcblk79 /no/file", 2, &["/no/file: No such file"]),
    ("direct bench mmcblk79 --op erase", 2, &["--op", "'erase'", "read, write"]),
    ("direct bind mmcblk79 --region 5", 2, &["--region", "'5'", "START+LENGTH"]),
    ("direct bind mmc0:0001 --region 1M++5", 2, &["--region", "'1M++5'", "START+LENGTH"]),
    ("direct buffer w.toml --bytes 0", 2, &["--bytes 0: must be a multiple of 4096"]),
    ("direct buffer w.toml --bytes 1G", 2, &["--bytes 1073741824: ", "has only"]),
    ("store", 2, &["Commands:"]),
    ("store create new --size 1q", 2, &["--size", "'1q'", "K, M, G"]),
    ("store create new --size 1", 2, &["new", "too few", "at least"]),
    ("store create new --size 0", 2, &["new: --size 0: ", "too few", "at least"]),
    ("store create new --size 1G --align 5", 2, &["--align 5", "a multiple of 4096"]),
    ("store create new --size 1G --extents 0", 2, &["--extents 0", "1 to 65536"]),
    ("store create none", 2, &["none: does not exist", "--size"]),
    ("store create garbage", 1, &["garbage holds other data", "--force"]),
    ("store put garbage x garbage", 2, &["ID x", "a number of 0 to"]),
    ("store get garbage 1 y", 1, &["garbage: holds no store", "steady store create"]),
    ("store list /no/file", 1, &["/no/file: No such file"]),
    ("store delete garbage", 2, &["<ID>"]),
    ("with", 2, &["--device <DEV>", "<PROGRAM>"]),
    ("with --device mmcblk79 -- true", 125, &["mmcblk79: no such block device"]),
    ("with --device mmcblk79 --knob x -- true", 2, &["--knob", "'x'", "KEY=VALUE"]),
    ("with --device mmcblk79 --knob x=1 -- true", 2, &["--knob", "'x=1'", "queue/NAME"]),
    ("with --device mmcblk79 --declare x -- true", 2, &["--declare", "'x'", "KEY=VALUE"]),
    ("with --device mmcblk79 --declare level=9 -- true", 2, &["--declare", "period_us: missing"]),
    ("with --device mmcblk79 --kworkers-fifo 0 -- true", 2, &["--kworkers-fifo", "1..=99"]),
    ("with --device mmcblk79 --class rt=dd:x -- true", 2, &["--out <FILE>"]),
];

const RECORDINGS: &[Wrong] = &[
    ("record", 2, &["--dir <DIR>"]),
    ("record --dir r --segments 1", 2, &["--segments 1", "2 to 10000"]),
    ("record --dir r --segments x", 2, &["--segments", "'x'", "a whole number"]),
    ("record --dir r --segment-size 1", 2, &["--segment-size 1", "262144 to"]),
    ("record --dir r --size 0", 2, &["--size 0", "at least 1"]),
    ("record --dir r --loss-window 0", 2, &["--loss-window 0", "2 to 3600000"]),
    ("record --dir r --ram 32K", 2, &["--ram 32768", "at least 32872", "two of the longest"]),
    ("record --dir r --incident-after 1s", 2, &["--ram <SIZE>"]),
    ("record --dir r --ram 1M --plan", 2, &["--ram", "--plan", "cannot be used with"]),
    ("record --dir r --ram 1M --incidents-max 0", 2, &["--incidents-max", "'0'", "1.."]),
    ("cat", 2, &["<PATH>"]),
    ("cat /no/file", 2, &["/no/file: No such file"]),
    ("cat empty", 2, &["empty: has no segment", "the directory of a recording"]),
    ("cat garbage", 1, &["garbage: not an MCAP file"]),
    ("export empty", 2, &["--output"]),
    ("export /no/file -o x", 2, &["/no/file: No such file"]),
    ("export garbage -o x", 1, &["garbage: not an MCAP file"]),
    ("info /no/file", 2, &["/no/file: No such file"]),
    ("recover empty", 2, &["empty", "no segment", "the directory of a recording"]),
    ("recover garbage", 1, &["garbage: not an MCAP file"]),
    ("incidents", 2, &["Commands:"]),
    ("incidents list empty", 1, &["empty: no recording here", "steady record --dir"]),
    ("incidents list /no/file", 1, &["/no/file: No such file"]),
    ("incidents release x", 2, &["--control <PATH>"]),
    ("incidents release x --dir /no/file", 1, &["/no/file: No such file"]),
    ("status", 2, &["--control <PATH>"]),
    ("status --control /no/socket", 1, &["/no/socket", "is a recorder with this socket running"]),
];

const OBSERVERS: &[Wrong] = &[
    ("trace", 2, &["a recorded trace", "--device"]),
    ("trace /no/file", 2, &["/no/file", "No such file"]),
    ("trace garbage", 2, &["garbage: not a known trace format", "--format"]),
    ("trace --format x garbage", 2, &["--format", "'x'", "ftrace, perf, trace-dat"]),
    ("trace --device mmcblk79 --duration 1s", 2, &["--device mmcblk79", "no such block device"]),
    ("trace --pid 0", 2, &["--pid", "'0'", "1..="]),
    ("trace --pid x", 2, &["--pid", "'x'", "a whole number"]),
    ("trace --duration 0", 2, &["--duration", "greater than 0"]),
    ("trace --duration 1s --interval 1ms", 2, &["--interval 1ms", "at least 100ms"]),
    ("trace --duration 1s --cgroup x", 2, &["--cgroup x", "must begin with /"]),
    ("watch mmcblk79", 2, &["mmcblk79: no such block device"]),
    ("watch --interval 1ms", 2, &["--interval", "'1ms'", "from 10ms to 1h"]),
    ("watch --count 0", 2, &["--count", "'0'", "1.."]),
    ("watch --count x", 2, &["--count", "'x'", "a whole number"]),
    ("watch --listen 8000", 2, &["--listen", "'8000'", "HOST:PORT"]),
    ("watch --sysfs /no/dir", 2, &["--sysfs /no/dir", "is sysfs mounted"]),
    ("watch --openmetrics x.txt", 2, &["--openmetrics", "x.txt", ".prom"]),
    ("watch --traces-max 5", 2, &["--traces <DIR>"]),
    ("watch --json --quiet", 2, &["--json", "cannot be used with"]),
];

fn files() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("w.toml"), WORKLOAD).unwrap();
    fs::write(dir.path().join("garbage"), "garbage\n").unwrap();
    fs::create_dir(dir.path().join("empty")).unwrap();
    dir
}

fn answer(dir: &Path, line: &str) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    command.args(line.split_whitespace()).current_dir(dir).stdin(Stdio::null());
    let output = command.output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

fn check(lines: &[Wrong]) {
    let dir = files();
    let mut faults = Vec::new();
    for &(line, status, words) in lines {
        let (ended, said) = answer(dir.path(), line);
        let lacks: Vec<&&str> = words.iter().filter(|word| !said.contains(**word)).collect();
        if ended != Some(status) || !lacks.is_empty() || said.contains("panicked") {
            faults.push(format!("{line}: {ended:?}, lacks {lacks:?}: {said}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn commands_without_a_device() {
    check(COMMANDS);
}

#[test]
fn apply_and_bound() {
    check(APPLY_AND_BOUND);
}

#[test]
fn bench_and_tune() {
    check(BENCH_AND_TUNE);
}

#[test]
fn devices_and_stores() {
    check(DEVICES);
}

#[test]
fn recordings() {
    check(RECORDINGS);
}

#[test]
fn traces_and_watching() {
    check(OBSERVERS);
}

#[test]
fn an_argument_that_is_not_text_is_named() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    command.args(["bench", "w.toml", "--variant"]).arg(OsStr::from_bytes(b"a\xff"));
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(r#""a\xFF": must be UTF-8"#), "{said}");
}

#[test]
fn there_are_120_of_them() {
    let tables = [COMMANDS, APPLY_AND_BOUND, BENCH_AND_TUNE, DEVICES, RECORDINGS, OBSERVERS];
    assert!(tables.iter().map(|table| table.len()).sum::<usize>() >= 120);
}
