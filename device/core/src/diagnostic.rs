// SPDX-License-Identifier: MIT OR Apache-2.0
//! The only writer of diagnostics. They go to standard error, and never end or delay the work. All
//! crates use it.
//!
//! `eprintln!` panics if standard error cannot be written, and blocks if its reader stops: a full
//! disk of logs or a stopped pager would end a recording. This writer drops the text instead. When
//! standard error accepts text again, a line reports the number of dropped messages.

use std::fmt::Arguments;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, write};

/// The time limit for a slow reader. After it expired once, nothing waits until the reader has read
/// again.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
/// A writable pipe takes at least this many bytes without blocking (PIPE_BUF).
const PIECE_BYTES: usize = 4_096;

/// Writes a line to standard error, with the arguments of `eprintln!`.
#[macro_export]
macro_rules! diagnostic {
    ($($argument:tt)*) => {
        $crate::diagnostic::line(format_args!($($argument)*))
    };
}

/// The function behind the macro.
pub fn line(text: Arguments<'_>) {
    write_text(&format!("{text}\n"));
}

/// Writes text that is not a whole line, such as a terminal's status line.
pub fn write_text(text: &str) {
    static WRITER: Mutex<Writer> = Mutex::new(Writer::new());
    let mut writer = WRITER.lock().unwrap_or_else(PoisonError::into_inner);
    writer.write(io::stderr().as_fd(), text);
}

/// The state of the reader, as far as known.
struct Writer {
    dropped: u64,
    /// Whether the last text could not be written.
    stuck: bool,
}

impl Writer {
    const fn new() -> Writer {
        Writer { dropped: 0, stuck: false }
    }

    fn write(&mut self, to: BorrowedFd<'_>, text: &str) {
        let patience = if self.stuck { AT_ONCE } else { PATIENCE };
        let mut bytes = Vec::with_capacity(text.len());
        if self.dropped > 0 {
            // Writing to a Vec cannot fail.
            let _ = writeln!(bytes, "steady: {} messages could not be shown", self.dropped);
        }
        bytes.extend_from_slice(text.as_bytes());
        self.stuck = write_all(to, &bytes, &patience).is_err();
        self.dropped = if self.stuck { self.dropped + 1 } else { 0 };
    }
}

/// Writes everything; fails at the time limit.
fn write_all(to: BorrowedFd<'_>, mut bytes: &[u8], patience: &Timespec) -> io::Result<()> {
    while !bytes.is_empty() {
        match poll(&mut [PollFd::new(&to, PollFlags::OUT)], Some(patience)) {
            Err(Errno::INTR) => continue,
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            ready => ready?,
        };
        match write(to, &bytes[..bytes.len().min(PIECE_BYTES)]) {
            Err(Errno::INTR) => {}
            written => bytes = &bytes[written?..],
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs::{File, OpenOptions};
    use std::io::Read;
    use std::os::fd::OwnedFd;

    use rustix::pipe::pipe;

    use super::*;

    /// A full pipe.
    fn full() -> (File, OwnedFd) {
        let (reader, writer) = pipe().unwrap();
        while write_all(writer.as_fd(), &[0; PIECE_BYTES], &AT_ONCE).is_ok() {}
        (reader.into(), writer)
    }

    #[test]
    fn text_is_written_whole() {
        let mut file = tempfile::tempfile().unwrap();
        let text = "a long line\n".repeat(1_000);
        Writer::new().write(file.as_fd(), &text);
        let mut written = String::new();
        io::Seek::rewind(&mut file).unwrap();
        file.read_to_string(&mut written).unwrap();
        assert_eq!(written, text);
    }

    #[test]
    fn what_cannot_be_written_is_dropped() {
        let full_device = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let read_only = File::open("/dev/null").unwrap();
        let closed = pipe().unwrap().1;
        for to in [full_device.as_fd(), read_only.as_fd(), closed.as_fd()] {
            let mut writer = Writer::new();
            writer.write(to, "text\n");
            assert_eq!((writer.dropped, writer.stuck), (1, true));
        }
    }

    #[test]
    fn nothing_waits_for_a_reader_that_does_not_read_and_it_learns_what_it_missed() {
        let (mut reader, to) = full();
        let mut writer = Writer::new();
        (0..3).for_each(|_| writer.write(to.as_fd(), "missed\n"));
        assert_eq!((writer.dropped, writer.stuck), (3, true));
        let mut filled = vec![0; 1 << 16];
        reader.read_exact(&mut filled).unwrap();
        writer.write(to.as_fd(), "seen\n");
        drop(to);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "steady: 3 messages could not be shown\nseen\n");
    }
}
