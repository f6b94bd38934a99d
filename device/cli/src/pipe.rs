// SPDX-License-Identifier: MIT OR Apache-2.0
//! Standard output for long output. After an interrupt, it no longer waits for its reader. `cat`
//! and `export` write to it.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use steadyio_core::interrupt::Interrupt;

/// A writable pipe takes at least this many bytes without blocking (PIPE_BUF).
const PIECE_BYTES: usize = 4_096;
/// The interval of checks for an interrupt while the reader does not read.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

pub struct Pipe {
    out: File,
    stop: Interrupt,
}

impl Pipe {
    pub fn stdout(stop: &Interrupt) -> io::Result<Pipe> {
        let out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        Ok(Pipe { out, stop: stop.clone() })
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            if self.stop.requested() {
                // The caller would retry after ErrorKind::Interrupted.
                return Err(io::Error::other("interrupted"));
            }
            match poll(&mut [PollFd::new(&self.out, PollFlags::OUT)], Some(&LOOK_EVERY)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return self.out.write(&bytes[..bytes.len().min(PIECE_BYTES)]),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
