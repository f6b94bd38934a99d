// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady store` on files and on loop devices.

use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use steadyio_testing::LoopDisk;

use crate::common::{stderr, valid_json};

const SCHEMA: &str = "store-1.schema.json";

fn steady(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_steady")).arg("store").args(arguments).output().unwrap()
}

#[track_caller]
fn good(arguments: &[&str]) -> String {
    let output = steady(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn refused(status: i32, arguments: &[&str]) -> String {
    let output = steady(arguments);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
    assert!(said.starts_with("steady: ") && output.stdout.is_empty(), "{said}");
    said
}

/// A folder, and in it a store and a file of so many bytes.
struct Place {
    dir: tempfile::TempDir,
    store: String,
    file: String,
}

impl Place {
    fn new(bytes: usize) -> Place {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
        let (store, file) = (at("store"), at("contents"));
        good(&["create", &store, "--size", "8MiB", "--align", "64K", "--extents", "10"]);
        fs::write(&file, contents(bytes)).unwrap();
        Place { dir, store, file }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn contents(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|n| (n / 7 + n % 251) as u8).collect()
}

#[test]
fn what_is_put_is_got_listed_checked_and_deleted() {
    let place = Place::new(1_000_001);
    let (store, file) = (place.store.as_str(), place.file.as_str());
    let said = good(&["put", store, "7", file]);
    assert!(
        said.starts_with("extent 7: 1000001 bytes; 2 reads, 3 writes, 3 flushes in "),
        "{said}"
    );
    let copy = place.at("copy");
    let got = good(&["get", store, "7", copy.to_str().unwrap(), "--json"]);
    let got: Value = serde_json::from_str(&got).unwrap();
    assert_eq!((&got["bytes"], &got["commands"]["reads"]), (&1_000_001.into(), &1.into()));
    assert_eq!(fs::read(copy).unwrap(), contents(1_000_001));
    assert_eq!(steady(&["get", store, "7", "-"]).stdout, contents(1_000_001));
    good(&["put", store, "8", file, "--size", "2M", "--twice", "--no-checksum"]);
    let text = good(&["list", store]);
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[1][..3], ["7", "1000001", "1000001"]);
    assert_eq!((rows[2][0], rows[2][2], rows[2][4], rows[2][5]), ("8", "2097152", "2", "none"));
    assert!(good(&["check", store]).contains("good"), "contents were read");
    let said = good(&["delete", store, "7", "8"]);
    assert_eq!(said, "deleted: 7, 8\n");
    assert!(refused(1, &["get", store, "7", "-"]).contains("no extent 7"));
    assert!(refused(1, &["delete", store, "7"]).contains("no extent 7"));
}

#[test]
fn json_keeps_to_its_schema() {
    let place = Place::new(10);
    let (store, file) = (place.store.as_str(), place.file.as_str());
    good(&["put", store, "18446744073709551615", file]);
    good(&["put", store, "3", file, "--no-checksum", "--twice"]);
    for action in ["list", "check"] {
        let report = valid_json(&steady(&[action, store, "--json"]), SCHEMA);
        assert_eq!(report["extents"][1]["id"], u64::MAX);
        assert_eq!((&report["good"], &report["store_bytes"]), (&true.into(), &(8 << 20).into()));
    }
}

#[test]
fn contents_come_through_a_pipe_if_their_room_is_said() {
    let place = Place::new(0);
    let store = place.store.as_str();
    let put = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
        command.args(["store", "put", store, "1", "-"]).args(more);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // Refused before it is read.
        let _ = child.stdin.take().unwrap().write_all(&contents(70_000));
        child.wait_with_output().unwrap()
    };
    let output = put(&[]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("--size makes one with that much room"),
        "{}",
        stderr(&output)
    );
    assert!(put(&["--size", "80000"]).status.success());
    assert!(put(&[]).status.success());
    assert_eq!(steady(&["get", store, "1", "-"]).stdout, contents(70_000));
    let too_long = Place::new(80_001);
    let said = refused(1, &["put", store, "1", &too_long.file]);
    assert!(said.contains("extent 1: 80001 bytes are too many: it was made for 80000"), "{said}");
    let said = refused(2, &["put", store, "1", &too_long.file, "--twice"]);
    assert!(said.contains("are for new ones"), "{said}");
    assert_eq!(steady(&["get", store, "1", "-"]).stdout, contents(70_000));
}

#[test]
fn create_loses_nothing_that_it_was_not_told_to() {
    let place = Place::new(100);
    let (store, file) = (place.store.as_str(), place.file.as_str());
    good(&["put", store, "1", file]);
    let said = refused(1, &["create", store]);
    assert!(said.contains("holds a store of steadyio, which would be lost"), "{said}");
    assert!(refused(1, &["create", file]).contains("holds other data"));
    assert!(refused(2, &["create", file, "--size", "1M"]).contains("exists (--size"));
    let missing = place.at("missing");
    let missing = missing.to_str().unwrap();
    assert!(refused(2, &["create", missing]).contains("--size makes a file"));
    // A failed create leaves no file.
    let said = refused(2, &["create", missing, "--size", "1M"]);
    assert!(said.contains("1048576 bytes are too few"), "{said}");
    assert!(refused(2, &["create", missing, "--size", "1M", "--align", "5000"]).contains("5000"));
    assert_eq!(place.names(), ["contents", "store"]);
    assert_eq!(steady(&["get", store, "1", "-"]).stdout, contents(100));
    good(&["create", store, "--force"]);
    assert!(!good(&["list", store]).contains("id "));
}

#[test]
fn damage_is_told_and_nothing_is_mended() {
    let place = Place::new(9_000);
    let (store, file) = (place.store.as_str(), place.file.as_str());
    good(&["put", store, "1", file]);
    good(&["put", store, "2", file]);
    let start = |id: usize| {
        let list: Value = serde_json::from_str(&good(&["list", store, "--json"])).unwrap();
        list["extents"][id - 1]["start"].as_u64().unwrap() as usize
    };
    let at = start(2);
    let mut bytes = fs::read(store).unwrap();
    bytes[at + 5_000] ^= 1;
    fs::write(store, &bytes).unwrap();
    let output = steady(&["check", store]);
    assert_eq!(output.status.code(), Some(3));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("good") && text.contains("DAMAGED"), "{text}");
    let copy = place.at("copy");
    let copy = copy.to_str().unwrap();
    let said = refused(1, &["get", store, "2", copy]);
    assert!(said.contains("extent 2: contents are damaged"), "{said}");
    assert!(!Path::new(copy).exists());
    good(&["get", store, "2", copy, "--no-verify"]);
    assert_eq!(fs::metadata(copy).unwrap().len(), 9_000);
    // The superblock: what is there can be read, and not changed.
    bytes[20] ^= 1;
    fs::write(store, &bytes).unwrap();
    assert_eq!(steady(&["get", store, "1", "-"]).stdout, contents(9_000));
    let said = refused(1, &["put", store, "1", file]);
    assert!(said.contains("damaged superblock") && said.contains("its copy is used"), "{said}");
    let report = valid_json(&steady(&["check", store, "--json"]), SCHEMA);
    assert_eq!((&report["good"], report["problems"].as_array().unwrap().len()), (&false.into(), 1));
    assert_eq!(fs::read(store).unwrap(), bytes);
}

#[test]
fn what_is_no_store_is_refused_by_every_command() {
    let place = Place::new(100_000);
    let file = place.file.as_str();
    for arguments in [
        &["list", file][..],
        &["check", file],
        &["get", file, "1", "-"],
        &["put", file, "1", file],
        &["delete", file, "1"],
    ] {
        assert!(refused(1, arguments).contains("holds no store"), "{arguments:?}");
    }
    assert!(refused(1, &["list", "/dev/null"]).contains("must be a block device"));
    assert!(refused(1, &["list", "/no/such"]).contains("No such file"));
    assert!(refused(1, &["put", &place.store, "1", "/no/such"]).contains("/no/such"));
}

#[test]
fn a_device_with_a_file_system_or_partitions_is_not_overwritten() {
    let Some(disk) = LoopDisk::new(32, &["--partscan"]) else { return };
    let node = disk.node.as_str();
    let run = |program: &str, arguments: &[&str], input: &str| {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success(), "{program}");
    };
    run("mkfs.ext4", &["-q", node], "");
    assert!(refused(1, &["create", node]).contains("holds an ext2, ext3 or ext4 filesystem"));
    let on = disk.dir.path().join("on");
    fs::create_dir(&on).unwrap();
    run("mount", &[node, on.to_str().unwrap()], "");
    let said = steady(&["create", node, "--force"]);
    run("umount", &[on.to_str().unwrap()], "");
    assert!(stderr(&said).contains("is in use (mounted on"), "{}", stderr(&said));
    run("sfdisk", &["-q", "--wipe", "always", node], "label: gpt\n,8M\n");
    let said = refused(1, &["create", node]);
    assert!(said.contains("holds partitions (") || said.contains("a GPT partition"), "{said}");
    good(&["create", node, "--force", "--align", "1M"]);
    let place = Place::new(3_000_000);
    good(&["put", node, "1", &place.file]);
    assert_eq!(steady(&["get", node, "1", "-"]).stdout, contents(3_000_000));
}

#[test]
fn an_interrupted_put_leaves_what_was_there() {
    let place = Place::new(9_000);
    let (store, file) = (place.store.as_str(), place.file.as_str());
    good(&["put", store, "1", file]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    command.args(["store", "put", store, "1", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(&contents(5_000)).unwrap();
    // It has the store open when nobody else may.
    while steady(&["list", store]).status.success() {}
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    drop(input);
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("interrupted: the store is as before"), "{}", stderr(&output));
    assert_eq!(steady(&["get", store, "1", "-"]).stdout, contents(9_000));
}

/// Puts by one of several programs: whether each that succeeded is there is asked at the end.
fn put_again_and_again(path: &str, id: u64, file: &Path, rounds: u32) -> Option<u32> {
    let mut last = None;
    for round in 0..rounds {
        fs::write(file, numbered(id, round)).unwrap();
        let output = steady(&["put", path, &id.to_string(), file.to_str().unwrap()]);
        match output.status.code() {
            Some(0) => last = Some(round),
            _ => assert!(stderr(&output).contains("another program"), "{}", stderr(&output)),
        }
    }
    last
}

fn numbered(id: u64, round: u32) -> Vec<u8> {
    format!("{id} {round} ").into_bytes().repeat(3_000)[..9_000].to_vec()
}

/// So many programs at a time, on paths to one store.
fn no_put_that_succeeded_is_lost(programs: u64, paths: &[String]) {
    let dir = tempfile::tempdir().unwrap();
    let mut succeeded = Vec::new();
    std::thread::scope(|scope| {
        let one = |id: u64| {
            let (path, file) = (&paths[id as usize % paths.len()], dir.path().join(id.to_string()));
            scope.spawn(move || (id, put_again_and_again(path, id, &file, 6)))
        };
        let running: Vec<_> = (0..programs).map(one).collect();
        succeeded.extend(running.into_iter().map(|thread| thread.join().unwrap()));
    });
    assert!(succeeded.iter().any(|(_, last)| last.is_some()), "none succeeded");
    good(&["check", &paths[0]]);
    for (id, last) in succeeded {
        let Some(last) = last else { continue };
        let got = steady(&["get", &paths[0], &id.to_string(), "-"]);
        assert_eq!(got.stdout, numbered(id, last), "{id}: {last}: {}", stderr(&got));
    }
}

#[test]
fn two_and_eight_programs_on_one_file_by_any_path_lose_nothing() {
    for programs in [2, 8] {
        let place = Place::new(10);
        let at = |name: &str| place.at(name).to_str().unwrap().to_string();
        let mut paths = vec![place.store.clone(), at("hard"), at("soft")];
        fs::hard_link(&place.store, &paths[1]).unwrap();
        std::os::unix::fs::symlink(&place.store, &paths[2]).unwrap();
        no_put_that_succeeded_is_lost(programs, &std::mem::take(&mut paths));
    }
}

#[test]
fn two_and_eight_programs_on_one_device_by_any_path_lose_nothing() {
    for programs in [2, 8] {
        let Some(disk) = LoopDisk::new(8, &[]) else { return };
        let other = disk.dir.path().join("node").to_str().unwrap().to_string();
        let number = fs::read_to_string(format!("/sys/block/{}/dev", disk.name())).unwrap();
        let mut made = Command::new("mknod");
        made.args([other.as_str(), "b"]).args(number.trim().split(':'));
        assert!(made.status().unwrap().success());
        good(&["create", &disk.node, "--align", "64K", "--extents", "10"]);
        let backing = disk.backing.to_str().unwrap().to_string();
        no_put_that_succeeded_is_lost(programs, &[disk.node.clone(), backing, other]);
    }
}

#[test]
fn a_superblock_is_repaired_when_asked_and_said() {
    let place = Place::new(5_000);
    good(&["put", &place.store, "1", &place.file]);
    assert!(good(&["repair", &place.store]).ends_with("both superblocks are good\n"));
    let mut image = fs::read(&place.store).unwrap();
    image[..512].fill(0);
    image.resize(image.len() + (1 << 20), 0);
    fs::write(&place.store, &image).unwrap();
    let said = refused(1, &["get", &place.store, "1", "-"]);
    assert!(said.contains("steady store repair"), "{said}");
    let output = steady(&["repair", &place.store, "--check"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert_eq!(fs::read(&place.store).unwrap(), image, "--check writes nothing");
    // Something else lies where the superblock was.
    image[510..512].copy_from_slice(&[0x55, 0xaa]);
    fs::write(&place.store, &image).unwrap();
    let said = refused(1, &["repair", &place.store]);
    assert!(said.contains("a boot sector") && said.contains("add --force"), "{said}");
    let said = good(&["repair", &place.store, "--force"]);
    assert!(
        said.contains("its copy at byte 8384512 is good: the damaged one was written"),
        "{said}"
    );
    assert_eq!(steady(&["get", &place.store, "1", "-"]).stdout, contents(5_000));
}

#[test]
fn several_extents_become_durable_with_one_record() {
    let place = Place::new(5_000);
    let other = place.at("other").to_str().unwrap().to_string();
    fs::write(&other, contents(100)).unwrap();
    let said = good(&["put", &place.store, "1", &place.file, "2", &other, "3", &other]);
    assert!(said.starts_with("extent 1: 5000 bytes\nextent 2: 100 bytes\n"), "{said}");
    // Two for the first, one for each of the others, and a record.
    assert!(said.contains("\n3 extents; ") && said.contains(" 5 writes, 3 flushes in "), "{said}");
    for (id, bytes) in [("1", 5_000), ("2", 100), ("3", 100)] {
        assert_eq!(steady(&["get", &place.store, id, "-"]).stdout, contents(bytes));
    }
    let said = good(&[
        "put",
        &place.store,
        "1",
        &other,
        "2",
        &place.at("other").display().to_string(),
        "--json",
    ]);
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["extents"][1], serde_json::json!({ "id": 2, "bytes": 100 }));
    assert!(refused(2, &["put", &place.store, "1", &other, "4"]).contains("without a file"));
    assert!(
        refused(2, &["put", &place.store, "1", &other, "1", &other]).contains("is there twice")
    );
    assert!(refused(2, &["put", &place.store, "one", &other]).contains("ID one: must be a number"));
    let missing = place.at("missing").display().to_string();
    assert!(
        refused(1, &["put", &place.store, "1", &place.file, "2", &missing]).contains("missing")
    );
    assert_eq!(steady(&["get", &place.store, "1", "-"]).stdout, contents(100), "all or none");
}

#[test]
fn contents_that_cannot_be_written_whole_are_an_error() {
    let place = Place::new(12);
    good(&["put", &place.store, "7", &place.file]);
    let get = |out: fs::File| {
        let mut steady = Command::new(env!("CARGO_BIN_EXE_steady"));
        steady.args(["store", "get", &place.store, "7", "-"]).stdout(out).output().unwrap()
    };
    let output = get(fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let copy = place.at("copy");
    assert!(get(fs::File::create(&copy).unwrap()).status.success());
    assert_eq!(fs::read(copy).unwrap(), contents(12));
}

#[test]
fn standard_output_by_name_has_the_contents_alone() {
    let place = Place::new(300);
    good(&["put", &place.store, "7", &place.file]);
    let copy = place.at("copy");
    let output = Command::new(env!("CARGO_BIN_EXE_steady"))
        .args(["store", "get", &place.store, "7", "/dev/stdout"])
        .stdout(fs::File::create(&copy).unwrap())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(fs::read(copy).unwrap(), contents(300));
}

#[test]
fn a_store_is_not_the_output_of_its_own_contents() {
    let place = Place::new(300);
    good(&["put", &place.store, "7", &place.file]);
    let before = fs::read(&place.store).unwrap();
    let link = place.at("link");
    std::os::unix::fs::symlink(&place.store, &link).unwrap();
    for out in [place.store.as_str(), link.to_str().unwrap()] {
        let said = refused(2, &["get", &place.store, "7", out]);
        assert!(said.contains("is the device or file that is read"), "{said}");
    }
    assert_eq!(fs::read(&place.store).unwrap(), before);
    let Some(disk) = LoopDisk::new(1, &[]) else { return };
    let said = refused(2, &["get", &place.store, "7", &disk.node]);
    assert!(said.contains("is a block device"), "{said}");
}

#[test]
fn a_pipe_is_the_input_of_one_extent() {
    let place = Place::new(1);
    let said = refused(2, &["put", &place.store, "1", "-", "2", "/dev/stdin", "--size=4K"]);
    assert!(said.contains("2 /dev/stdin: is there twice"), "{said}");
}

/// So many pairs of a number and the same file.
fn pairs(count: u64, file: &str) -> Vec<String> {
    (1..=count).flat_map(|id| [id.to_string(), file.to_string()]).collect()
}

#[test]
fn a_command_changes_84_extents_and_no_more() {
    let place = Place::new(10);
    let many = place.at("many").to_str().unwrap().to_string();
    good(&["create", &many, "--size=4M", "--align=4K", "--extents=100"]);
    let put = |count| pairs(count, &place.file);
    let words =
        |command: &str, more: Vec<String>| [vec![command.into(), many.clone()], more].concat();
    let run = |words: Vec<String>| steady(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let ids = |count: u64| (1..=count).map(|id| id.to_string()).collect();
    for command in [words("put", put(85)), words("delete", ids(85))] {
        let output = run(command);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        let said = stderr(&output);
        assert!(said.starts_with("steady: 85 extents: must be at most 84"), "{said}");
    }
    assert_eq!(run(words("put", put(84))).status.code(), Some(0));
    // Those that are there and a new one.
    assert_eq!(run(words("put", vec!["85".into(), place.file.clone()])).status.code(), Some(0));
    assert_eq!(run(words("delete", ids(84))).status.code(), Some(0));
    assert!(good(&["list", &many]).contains("1 of 100 extents"));
    assert!(refused(2, &["delete", &many, "85", "85"]).contains("ID 85: is there twice"));
}

#[test]
fn an_option_of_create_is_named_before_anything_is_made() {
    let place = Place::new(10);
    let new = place.at("new").to_str().unwrap().to_string();
    for (arguments, says) in [
        (&["--size=0"][..], "--size 0: 0 bytes are too few"),
        (&["--size=18446744073709551615"], "--size 18446744073709551615: "),
        (&["--size=1G", "--align=0"], "--align 0: must be a multiple of 4096, at most 1073741824"),
        (&["--size=1G", "--align=5000"], "--align 5000: must be a multiple of 4096"),
        (&["--size=1G", "--align=18446744073709551615"], "--align 18446744073709551615: must be"),
        (&["--size=1G", "--extents=0"], "--extents 0: must be 1 to 65536"),
        (&["--size=1G", "--extents=65537"], "--extents 65537: must be 1 to 65536"),
    ] {
        let said = refused(2, &[&["create", &new][..], arguments].concat());
        assert!(said.contains(says), "{says} is not in: {said}");
        assert_eq!(place.names(), ["contents", "store"]);
    }
}

#[test]
fn a_new_extent_has_room() {
    let place = Place::new(0);
    let (store, file) = (place.store.as_str(), place.file.as_str());
    let said = refused(2, &["put", store, "1", file]);
    assert!(said.contains(&format!("{file}: is empty (--size gives extent 1 room)")), "{said}");
    let said = refused(2, &["put", store, "1", file, "--size=0"]);
    assert!(said.contains("--size 0: must be at least 1"), "{said}");
    good(&["put", store, "1", file, "--size=1"]);
}

#[test]
fn a_file_name_need_not_be_text() {
    let place = Place::new(9_000);
    let name = place.dir.path().join(std::ffi::OsStr::from_bytes(b"\xff"));
    fs::rename(&place.file, &name).unwrap();
    let mut steady = Command::new(env!("CARGO_BIN_EXE_steady"));
    let output = steady.args(["store", "put", &place.store, "1"]).arg(&name).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(self::steady(&["get", &place.store, "1", "-"]).stdout, contents(9_000));
}

#[test]
fn ctrl_c_ends_the_wait_for_the_writer_of_a_pipe() {
    let place = Place::new(9_000);
    let fifo = place.at("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    command.args(["store", "put", &place.store, "1", fifo.to_str().unwrap(), "--size=8K"]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while child.try_wait().unwrap().is_none() && std::time::Instant::now() < until {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let _ = child.kill();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    // A writer is waited for.
    let put = Command::new(env!("CARGO_BIN_EXE_steady"))
        .args(["store", "put", &place.store, "1", fifo.to_str().unwrap(), "--size=9K"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    fs::write(&fifo, contents(9_000)).unwrap();
    let output = put.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(steady(&["get", &place.store, "1", "-"]).stdout, contents(9_000));
}

#[test]
fn a_part_of_a_block_device_is_not_taken_for_all_of_it() {
    let Some(disk) = LoopDisk::new(8, &[]) else { return };
    for part in ["p2", "0+4M"] {
        let name = format!("{}@{part}", disk.node);
        for arguments in [&["create", &name, "--force"][..], &["check", &name]] {
            let said = refused(1, arguments);
            let says = format!("{}: @ names a part of an NVMe namespace", disk.node);
            assert!(said.contains(&says), "{said}");
        }
    }
    assert!(fs::read(&disk.backing).unwrap().iter().all(|&byte| byte == 0));
}

/// Opening one may have an effect: this one fails where there is no terminal.
#[test]
fn another_driver_s_device_is_not_opened() {
    for (arguments, says) in [
        (&["store", "check"][..], "must be a block device, a /dev/chardiskN"),
        (&["direct", "info"], "not a chario card"),
        (&["direct", "write", "/dev/tty"], "not a chario card"),
    ] {
        let mut command = Command::new("setsid");
        command.arg("--wait").arg(env!("CARGO_BIN_EXE_steady")).args(arguments);
        let last = if arguments.len() == 3 { "/etc/passwd" } else { "/dev/tty" };
        let output = command.arg(last).stdin(Stdio::null()).output().unwrap();
        assert!(stderr(&output).contains(says), "{arguments:?}: {}", stderr(&output));
    }
}
