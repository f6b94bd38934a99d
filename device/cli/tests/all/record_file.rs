// SPDX-License-Identifier: MIT OR Apache-2.0
//! The place of an output file keeps its kind (FIFO, device, link), owner and mode. All outputs of
//! a record go the same way. The tests use those of `steady trace`, for which a recorded trace is
//! enough.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use rustix::process::geteuid;
use steadyio_testing::{LoopDisk, skip};
use tempfile::TempDir;

use crate::common::stderr;

const SAMPLE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../trace/tests/traces/host-report-t.txt");

fn trace(spans: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    command.args(["trace", SAMPLE, "--spans"]).arg(spans);
    command
}

fn done(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
}

fn expected(dir: &TempDir) -> String {
    let path = dir.path().join("expected");
    done(&trace(&path).output().unwrap());
    fs::read_to_string(path).unwrap()
}

fn node(path: &Path, kind: FileType, device: u64) {
    mknodat(CWD, path, kind, Mode::from_raw_mode(0o600), device).unwrap();
}

#[test]
fn a_fifo_is_written_into() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fifo");
    node(&path, FileType::Fifo, 0);
    let reader = thread::spawn({
        let path = path.clone();
        move || fs::read_to_string(path).unwrap()
    });
    done(&trace(&path).output().unwrap());
    assert!(fs::symlink_metadata(&path).unwrap().file_type().is_fifo());
    assert_eq!(reader.join().unwrap(), expected(&dir));
}

#[test]
fn a_fifo_that_nobody_reads_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fifo");
    node(&path, FileType::Fifo, 0);
    let output = trace(&path).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("is a FIFO that no program reads"), "{}", stderr(&output));
}

#[test]
fn a_file_that_is_replaced_keeps_its_owner_and_mode() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    fs::write(&path, "before").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    // Only root may give a file to anybody.
    let owner = geteuid().is_root().then_some(12_345);
    chown(&path, owner, owner).unwrap();
    let before = fs::metadata(&path).unwrap();
    done(&trace(&path).output().unwrap());
    let after = fs::metadata(&path).unwrap();
    let of = |file: &Metadata| (file.uid(), file.gid(), file.mode() & 0o7777);
    assert_eq!(of(&after), of(&before));
    assert_ne!(fs::read_to_string(&path).unwrap(), "before");
}

#[test]
fn a_device_node_is_written_into() {
    if !geteuid().is_root() {
        return skip("a device node can be made by root only");
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("null");
    node(&path, FileType::CharacterDevice, makedev(1, 3));
    if let Err(error) = OpenOptions::new().write(true).open(&path) {
        return skip(&format!("device nodes cannot be opened here: {error}"));
    }
    let output = trace(&path).arg("--perfetto").arg(&path).output().unwrap();
    done(&output);
    let found = fs::symlink_metadata(&path).unwrap();
    assert!(found.file_type().is_char_device());
    assert_eq!(found.mode() & 0o777, 0o600);
}

#[test]
fn a_link_stays_and_the_file_behind_it_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("elsewhere");
    fs::create_dir(&folder).unwrap();
    let (target, link) = (folder.join("target"), dir.path().join("link"));
    fs::write(&target, "old").unwrap();
    let old_inode = fs::metadata(&target).unwrap().ino();
    symlink("elsewhere/target", &link).unwrap();
    done(&trace(&link).output().unwrap());
    assert_eq!(fs::read_link(&link).unwrap(), PathBuf::from("elsewhere/target"));
    assert_eq!(fs::read_to_string(&target).unwrap(), expected(&dir));
    assert_ne!(fs::metadata(&target).unwrap().ino(), old_inode, "written in place");
}

#[test]
fn a_link_to_nothing_is_an_error_and_stays() {
    let dir = tempfile::tempdir().unwrap();
    let link = dir.path().join("link");
    symlink("nothing", &link).unwrap();
    let output = trace(&link).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(said.contains("is a link to a file that does not exist"), "{said}");
    assert!(link.is_symlink() && !dir.path().join("nothing").exists());
}

/// A shell's redirection keeps the file: what others write into it is not lost.
#[test]
fn standard_output_by_its_name_is_written_into() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("redirected");
    let link = dir.path().join("link");
    symlink("/dev/stdout", &link).unwrap();
    for name in [Path::new("/dev/stdout"), &link] {
        fs::write(&path, "before\n").unwrap();
        let redirected = File::options().append(true).open(&path).unwrap();
        done(&trace(name).stdout(redirected).stderr(Stdio::piped()).output().unwrap());
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("before\n") && text.contains("Worst I/Os"), "{text}");
        assert!(text.contains(&expected(&dir)), "{text}");
    }
}

#[test]
fn a_regular_file_is_replaced_when_the_record_is_complete() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("regular");
    fs::write(&path, "old").unwrap();
    let mut old = File::open(&path).unwrap();
    done(&trace(&path).output().unwrap());
    let mut kept = String::new();
    old.read_to_string(&mut kept).unwrap();
    assert_eq!(kept, "old", "written in place");
    assert_eq!(fs::read_to_string(&path).unwrap(), expected(&dir));
}

#[test]
fn a_storage_device_is_refused() {
    let Some(disk) = LoopDisk::new(1, &[]) else { return };
    let output = trace(Path::new(&disk.node)).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let says = format!("--spans {}: is a storage device", disk.node);
    assert!(stderr(&output).contains(&says), "{}", stderr(&output));
}

#[test]
fn a_folder_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let output = trace(dir.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("is a directory"), "{}", stderr(&output));
}
