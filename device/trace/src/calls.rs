// SPDX-License-Identifier: MIT OR Apache-2.0
//! The system calls that can lead to I/O, or wait for it. Each is declared once, in one table, from
//! which `source::table` makes the events to trace.

/// The names of the trace events of one system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallEvents {
    pub call: Call,
    /// The part of the event's name after `sys_enter_` and `sys_exit_`.
    pub name: &'static str,
    /// The name of the argument with the file descriptor. A call with two of them has the one that
    /// it reads from.
    pub fd: Option<&'static str>,
    /// Whether the call is about names and attributes of files. Such calls are shown on request
    /// only.
    pub metadata: bool,
}

macro_rules! calls {
    ($($call:ident $name:literal $fd:expr, $metadata:literal;)*) => {
        /// A system call that can lead to I/O, or wait for it.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Call {
            $($call,)*
            /// Not a call. The program touches memory that the kernel has to read, and waits for it
            /// as in a call.
            #[default]
            PageFault,
        }

        pub const CALLS: &[CallEvents] = &[
            $(CallEvents { call: Call::$call, name: $name, fd: $fd, metadata: $metadata },)*
        ];
    };
}

const FD: Option<&str> = Some("fd");

calls! {
    Read "read" FD, false;
    Write "write" FD, false;
    Pread64 "pread64" FD, false;
    Pwrite64 "pwrite64" FD, false;
    Readv "readv" FD, false;
    Writev "writev" FD, false;
    Preadv "preadv" FD, false;
    Pwritev "pwritev" FD, false;
    Preadv2 "preadv2" FD, false;
    Pwritev2 "pwritev2" FD, false;
    Sendfile64 "sendfile64" Some("in_fd"), false;
    CopyFileRange "copy_file_range" Some("fd_in"), false;
    Splice "splice" Some("fd_in"), false;
    Fsync "fsync" FD, false;
    Fdatasync "fdatasync" FD, false;
    Sync "sync" None, false;
    Syncfs "syncfs" FD, false;
    SyncFileRange "sync_file_range" FD, false;
    Msync "msync" None, false;
    Fallocate "fallocate" FD, false;
    Ftruncate "ftruncate" FD, false;
    Readahead "readahead" FD, false;
    Fadvise64 "fadvise64" FD, false;
    IoSubmit "io_submit" None, false;
    IoGetevents "io_getevents" None, false;
    IoPgetevents "io_pgetevents" None, false;
    IoUringEnter "io_uring_enter" None, false;
    Open "open" None, true;
    Openat "openat" None, true;
    Openat2 "openat2" None, true;
    Creat "creat" None, true;
    Close "close" FD, true;
    CloseRange "close_range" None, true;
    Dup2 "dup2" Some("newfd"), true;
    Dup3 "dup3" Some("newfd"), true;
    Execve "execve" None, true;
    Execveat "execveat" None, true;
    Newstat "newstat" None, true;
    Newlstat "newlstat" None, true;
    Newfstat "newfstat" FD, true;
    Newfstatat "newfstatat" None, true;
    Statx "statx" None, true;
    Getdents "getdents" FD, true;
    Getdents64 "getdents64" FD, true;
    Unlink "unlink" None, true;
    Unlinkat "unlinkat" None, true;
    Rename "rename" None, true;
    Renameat "renameat" None, true;
    Renameat2 "renameat2" None, true;
    Mkdir "mkdir" None, true;
    Mkdirat "mkdirat" None, true;
    Rmdir "rmdir" None, true;
    Truncate "truncate" None, true;
}

/// Operations of io_uring: the kernel's number (`enum io_uring_op`, a stable interface), the name
/// in events, and the equivalent system call.
pub const URING_OPERATIONS: [(u64, &str, Call); 22] = [
    (1, "READV", Call::Read),
    (2, "WRITEV", Call::Write),
    (3, "FSYNC", Call::Fsync),
    (4, "READ_FIXED", Call::Read),
    (5, "WRITE_FIXED", Call::Write),
    (8, "SYNC_FILE_RANGE", Call::SyncFileRange),
    (17, "FALLOCATE", Call::Fallocate),
    (18, "OPENAT", Call::Openat),
    (19, "CLOSE", Call::Close),
    (21, "STATX", Call::Statx),
    (22, "READ", Call::Read),
    (23, "WRITE", Call::Write),
    (24, "FADVISE", Call::Fadvise64),
    (28, "OPENAT2", Call::Openat2),
    (30, "SPLICE", Call::Splice),
    (35, "RENAMEAT", Call::Renameat2),
    (36, "UNLINKAT", Call::Unlinkat),
    (37, "MKDIRAT", Call::Mkdirat),
    (49, "READ_MULTISHOT", Call::Read),
    (55, "FTRUNCATE", Call::Ftruncate),
    (60, "READV_FIXED", Call::Read),
    (61, "WRITEV_FIXED", Call::Write),
];

impl Call {
    /// The kernel's name of the call.
    pub fn name(self) -> &'static str {
        let events = CALLS.iter().find(|events| events.call == self);
        events.map_or("page_fault", |events| events.name)
    }

    /// Whether the call reads data into the program's memory.
    pub fn is_read(self) -> bool {
        matches!(self, Call::Read | Call::Pread64 | Call::Readv | Call::Preadv | Call::Preadv2)
    }

    /// Whether the call writes data from the program's memory.
    pub fn is_write(self) -> bool {
        matches!(self, Call::Write | Call::Pwrite64 | Call::Writev | Call::Pwritev | Call::Pwritev2)
    }

    /// The number of bytes that the call moved, if it returned `result`.
    pub fn moved(self, result: i64) -> u64 {
        if self.moves_data() { result.try_into().unwrap_or(0) } else { 0 }
    }

    /// Whether the call returns the number of bytes that it moved.
    pub fn moves_data(self) -> bool {
        let between = matches!(self, Call::Sendfile64 | Call::CopyFileRange | Call::Splice);
        between || self.is_read() || self.is_write()
    }

    /// Whether the call may close files: the descriptor that it names, or else any.
    pub fn closes_files(self) -> bool {
        use Call::*;
        matches!(self, Close | CloseRange | Dup2 | Dup3 | Execve | Execveat)
    }

    /// Whether the call makes earlier writes durable.
    pub fn is_sync(self) -> bool {
        matches!(self, Call::Fsync | Call::Fdatasync | Call::Sync | Call::Syncfs | Call::Msync)
    }
}
