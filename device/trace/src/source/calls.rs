// SPDX-License-Identifier: MIT OR Apache-2.0
//! The system calls of [`Call`] as the `syscalls` events name them and their arguments, in binary and in text.

use crate::event::Call;

/// What the events of one system call are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallEvents {
    pub call: Call,
    /// Behind `sys_enter_` and `sys_exit_`.
    pub name: &'static str,
    /// The argument that is the file descriptor, of the file read from if there are two.
    pub fd: Option<&'static str>,
    /// The argument that is the number of bytes asked for.
    pub bytes: Option<&'static str>,
    /// It is about names and attributes of files: traced if asked for.
    pub metadata: bool,
}

pub const CALLS: [CallEvents; 46] = [
    events(Call::Read, "read", Some("fd"), Some("count")),
    events(Call::Write, "write", Some("fd"), Some("count")),
    events(Call::Pread64, "pread64", Some("fd"), Some("count")),
    events(Call::Pwrite64, "pwrite64", Some("fd"), Some("count")),
    events(Call::Readv, "readv", Some("fd"), None),
    events(Call::Writev, "writev", Some("fd"), None),
    events(Call::Preadv, "preadv", Some("fd"), None),
    events(Call::Pwritev, "pwritev", Some("fd"), None),
    events(Call::Preadv2, "preadv2", Some("fd"), None),
    events(Call::Pwritev2, "pwritev2", Some("fd"), None),
    events(Call::Sendfile64, "sendfile64", Some("in_fd"), Some("count")),
    events(Call::CopyFileRange, "copy_file_range", Some("fd_in"), Some("len")),
    events(Call::Splice, "splice", Some("fd_in"), Some("len")),
    events(Call::Fsync, "fsync", Some("fd"), None),
    events(Call::Fdatasync, "fdatasync", Some("fd"), None),
    events(Call::Sync, "sync", None, None),
    events(Call::Syncfs, "syncfs", Some("fd"), None),
    events(Call::SyncFileRange, "sync_file_range", Some("fd"), Some("nbytes")),
    events(Call::Msync, "msync", None, Some("len")),
    events(Call::Fallocate, "fallocate", Some("fd"), Some("len")),
    events(Call::Ftruncate, "ftruncate", Some("fd"), None),
    events(Call::IoSubmit, "io_submit", None, None),
    events(Call::IoGetevents, "io_getevents", None, None),
    events(Call::IoPgetevents, "io_pgetevents", None, None),
    events(Call::IoUringEnter, "io_uring_enter", Some("fd"), None),
    metadata(Call::Open, "open", None),
    metadata(Call::Openat, "openat", None),
    metadata(Call::Openat2, "openat2", None),
    metadata(Call::Creat, "creat", None),
    metadata(Call::Close, "close", Some("fd")),
    metadata(Call::Newstat, "newstat", None),
    metadata(Call::Newlstat, "newlstat", None),
    metadata(Call::Newfstat, "newfstat", Some("fd")),
    metadata(Call::Newfstatat, "newfstatat", None),
    metadata(Call::Statx, "statx", None),
    metadata(Call::Getdents, "getdents", Some("fd")),
    metadata(Call::Getdents64, "getdents64", Some("fd")),
    metadata(Call::Unlink, "unlink", None),
    metadata(Call::Unlinkat, "unlinkat", None),
    metadata(Call::Rename, "rename", None),
    metadata(Call::Renameat, "renameat", None),
    metadata(Call::Renameat2, "renameat2", None),
    metadata(Call::Mkdir, "mkdir", None),
    metadata(Call::Mkdirat, "mkdirat", None),
    metadata(Call::Rmdir, "rmdir", None),
    metadata(Call::Truncate, "truncate", None),
];

const fn metadata(call: Call, name: &'static str, fd: Option<&'static str>) -> CallEvents {
    CallEvents { call, name, fd, bytes: None, metadata: true }
}

const fn events(
    call: Call,
    name: &'static str,
    fd: Option<&'static str>,
    bytes: Option<&'static str>,
) -> CallEvents {
    CallEvents { call, name, fd, bytes, metadata: false }
}

/// The call of this name, without `sys_enter_` or `sys_exit_`.
pub fn by_name(name: &[u8]) -> Option<&'static CallEvents> {
    CALLS.iter().find(|events| events.name.as_bytes() == name)
}
