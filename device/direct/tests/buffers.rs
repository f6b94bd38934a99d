// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which memory the running kernel takes: real file descriptors, real I/O. Huge pages, which few
//! machines have set aside: tests/stock/huge_pages.sh.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use steadyio_direct::buffer::{Buffer, BufferError, SCRATCH, Use};
use steadyio_direct::memory_kind::MemoryKind;
use steadyio_testing::{LoopDisk, is_root, skip};

const BYTES: u64 = 1 << 20;

fn memfd(flags: MemfdFlags, bytes: u64) -> OwnedFd {
    let fd = memfd_create("buffer", flags).unwrap();
    ftruncate(&fd, bytes).unwrap();
    fd
}

fn from(fd: impl AsFd, bytes: u64) -> Result<Buffer, BufferError> {
    Buffer::from_fd(fd.as_fd(), bytes, Path::new(SCRATCH))
}

/// io_uring may be forbidden on this machine; then that is what it says.
fn assert_fixed_works(buffer: &Buffer) {
    let fixed = buffer.verdict(Use::IoUringFixed).unwrap();
    match fixed.errno {
        Some(libc::EPERM | libc::ENOSYS) => skip("io_uring is not allowed on this machine"),
        Some(libc::ENOMEM) => skip("less than 1 MiB may be locked on this machine"),
        _ => assert!(fixed.works, "{fixed:?}"),
    }
}

#[test]
fn shared_memory_is_taken_and_keeps_its_contents() {
    let fd = memfd(MemfdFlags::CLOEXEC, BYTES);
    let pattern: Vec<u8> = (0..BYTES).map(|byte| (byte % 251) as u8).collect();
    let mut file = File::from(fd.try_clone().unwrap());
    file.write_all(&pattern).unwrap();
    let buffer = from(&fd, BYTES).unwrap();
    assert_eq!(buffer.kind, MemoryKind::SharedMemory);
    assert!(buffer.verdict(Use::Direct).unwrap().works);
    assert_fixed_works(&buffer);
    assert_eq!(buffer.verdict(Use::Chardisk), None, "there was no such target");
    let mut seen = vec![0; BYTES as usize];
    buffer.mapping.copy_out(0, &mut seen);
    assert!(seen == pattern, "trying changed the memory");
}

#[test]
fn a_files_pages_are_not_pinned_for_long() {
    let file = tempfile::tempfile_in(SCRATCH).unwrap();
    file.set_len(BYTES).unwrap();
    let buffer = from(&file, BYTES).unwrap();
    let fixed = buffer.verdict(Use::IoUringFixed).unwrap();
    assert_eq!(buffer.kind, MemoryKind::File);
    // File systems without write-back (a container's overlay, for one) allow it.
    if fixed.works {
        skip("the file system of /var/tmp lets its pages be pinned");
        return;
    }
    assert!(!fixed.reason.contains("no rule"), "{fixed:?}");
}

#[test]
fn what_cannot_be_mapped_is_said_with_the_way_out() {
    let short = memfd(MemfdFlags::CLOEXEC, BYTES);
    for (bytes, says) in
        [(0, "multiple of 4096"), (100, "multiple of 4096"), (BYTES * 2, "1048576")]
    {
        let error = from(&short, bytes).unwrap_err().to_string();
        assert!(error.contains(&format!("bytes = {bytes}: ")) && error.contains(says), "{error}");
    }
    let sealed = memfd(MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING, BYTES);
    fcntl_add_seals(&sealed, SealFlags::WRITE).unwrap();
    assert!(from(&sealed, BYTES).unwrap_err().to_string().contains("F_SEAL_WRITE"));
    let read_only = File::open("/proc/self/exe").unwrap();
    let error = from(&read_only, 4096).unwrap_err().to_string();
    assert!(error.contains("open it for reading and writing"), "{error}");
    let directory = File::open("/").unwrap();
    assert!(from(&directory, 4096).unwrap_err().to_string().contains("cannot be mapped"));
}

#[test]
fn physical_addresses_are_not_written_to() {
    if !is_root("a node of /dev/mem") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let node = dir.path().join("mem");
    let made = Command::new("mknod").arg(&node).args(["c", "1", "1"]).status().unwrap();
    assert!(made.success());
    // It can be examined only: mapping it would be another error.
    let memory = File::options().read(true).custom_flags(libc::O_PATH).open(&node).unwrap();
    let error = from(&memory, 4_096).unwrap_err().to_string();
    assert!(error.contains("unsupported: physical addresses are not accepted"), "{error}");
}

#[test]
fn a_target_is_named_as_any_device() {
    let Some(disk) = LoopDisk::new(1, &["--direct-io=on"]) else { return };
    let fd = memfd(MemfdFlags::CLOEXEC, BYTES);
    for target in [disk.name(), &disk.node] {
        let buffer = Buffer::from_fd(fd.as_fd(), BYTES, Path::new(target)).unwrap();
        assert!(buffer.verdict(Use::Direct).unwrap().works, "{target}");
    }
}

#[test]
fn a_target_that_proves_nothing_is_refused() {
    let fd = memfd(MemfdFlags::CLOEXEC, BYTES);
    for (target, says) in [
        ("/dev/shm", "tmpfs has no device"),
        ("/dev/null", "not a /dev/chardiskN"),
        ("/none", "not a target"),
    ] {
        let error = Buffer::from_fd(fd.as_fd(), BYTES, Path::new(target)).unwrap_err();
        let error = error.to_string();
        if target == "/dev/shm" && error.contains("no file with O_DIRECT") {
            continue; // Before Linux 6.6 tmpfs refuses O_DIRECT itself.
        }
        assert!(error.starts_with(target) && error.contains(says), "{error}");
    }
}
