// SPDX-License-Identifier: MIT OR Apache-2.0
//! The thread that moves the pages of all CPUs' buffers into memory.
//!
//! It wakes at fixed times instead of waiting for pages: a writer with a waiting reader has to look whether to
//! wake it. While tracing it takes full pages only, which the kernel moves through a pipe without a copy of
//! its own; a page that is being filled would be copied record by record.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use steadyio_core::scheduling::set_fifo;

use super::cpu_data::CpuData;
use super::folder::{create_pages, remove_pages};
use super::{CaptureError, Options};
use crate::source::tracefs::Instance;

/// Pages move through a pipe in such pieces, if the system allows one as large.
const PIPE_BYTES: usize = 1 << 20;

const PRIORITY: u8 = 1;

/// The thread, from outside.
#[derive(Debug)]
pub struct Reader {
    thread: Option<JoinHandle<io::Result<Taken>>>,
    end: Arc<AtomicBool>,
}

/// What the thread has taken.
#[derive(Debug, Default)]
pub struct Taken {
    pub held: Vec<CpuData>,
    /// Why the folder could not take it when memory was full; then all of it is in memory.
    pub no_room: Option<io::Error>,
}

/// What the thread works on.
struct Work {
    end: Arc<AtomicBool>,
    cpus: Vec<(File, CpuData)>,
    pipe: Pipe,
    page_size: usize,
    period: Duration,
    memory_bytes_max: u64,
    keep: Option<PathBuf>,
    no_room: Option<io::Error>,
    /// Ends the tracing by `0`.
    tracing_on: File,
}

struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
    bytes: usize,
}

impl Reader {
    /// Starts it for all CPUs of an instance.
    pub fn start(
        instance: &Instance,
        page_size: usize,
        options: &Options,
    ) -> Result<Reader, CaptureError> {
        let hold = |what: &str| {
            let what = what.to_string();
            move |error| CaptureError::Hold { what, error }
        };
        let mut cpus = Vec::new();
        for cpu in instance.cpus()? {
            let path = instance.path(&format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
            let raw = open_nonblocking(&path).map_err(hold(&path.to_string_lossy()))?;
            cpus.push((raw, CpuData::in_memory(cpu).map_err(hold("memory for the trace"))?));
        }
        let path = instance.path("tracing_on");
        let tracing_on =
            File::options().write(true).open(&path).map_err(hold(&path.to_string_lossy()))?;
        let end = Arc::new(AtomicBool::new(false));
        let mut work = Work {
            end: Arc::clone(&end),
            cpus,
            pipe: Pipe::new(page_size).map_err(hold("a pipe"))?,
            page_size,
            period: options.period,
            memory_bytes_max: options.memory_bytes_max,
            keep: options.keep.clone(),
            no_room: None,
            tracing_on,
        };
        let thread = thread::Builder::new().name("steady-trace".into());
        let thread = thread.spawn(move || work.run()).map_err(hold("a thread"))?;
        Ok(Reader { thread: Some(thread), end })
    }

    /// Whether it has ended without being told to.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_some_and(JoinHandle::is_finished)
    }

    /// Tracing is off: takes the rest.
    pub fn finish(mut self) -> Result<Taken, CaptureError> {
        self.join().map_err(|error| CaptureError::Hold { what: "reading the trace".into(), error })
    }

    fn join(&mut self) -> io::Result<Taken> {
        let Some(thread) = self.thread.take() else { return Ok(Taken::default()) };
        self.end.store(true, Ordering::Relaxed);
        thread.thread().unpark();
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the reading thread panicked")))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // The thread holds files of the instance, which could not be removed.
        let _ = self.join();
    }
}

impl Work {
    fn run(&mut self) -> io::Result<Taken> {
        // Else busy programs keep it waiting until a buffer is full and events are lost. It runs for
        // short moments, and the lowest real-time priority is enough; where it is refused, losses are reported.
        let _ = set_fifo(PRIORITY);
        while !self.end.load(Ordering::Relaxed) && self.make_room() {
            thread::park_timeout(self.period);
            self.take_full_pages()?;
        }
        self.tracing_on.write_all(b"0")?;
        self.take_full_pages()?;
        let mut all = Vec::new();
        for (raw, mut held) in self.cpus.drain(..) {
            take_rest(raw, &mut held, self.page_size)?;
            all.push(held);
        }
        Ok(Taken { held: all, no_room: self.no_room.take() })
    }

    fn take_full_pages(&mut self) -> io::Result<()> {
        for (raw, held) in &mut self.cpus {
            held.bytes += self.pipe.move_pages(raw, &held.file)?;
        }
        Ok(())
    }

    /// If memory is full, goes on in the folder; false if there is none, or no room there.
    fn make_room(&mut self) -> bool {
        let bytes: u64 = self.cpus.iter().map(|(_, held)| held.bytes).sum();
        if bytes < self.memory_bytes_max {
            return true;
        }
        let Some(dir) = &self.keep else { return false };
        let held = || self.cpus.iter().map(|(_, held)| held);
        let copies: io::Result<Vec<File>> =
            held().map(|held| held.copy_to(create_pages(dir, held.cpu)?)).collect();
        match copies {
            Ok(copies) => {
                self.cpus.iter_mut().zip(copies).for_each(|((_, held), to)| held.go_on_in(to));
                self.memory_bytes_max = u64::MAX;
            }
            Err(error) => {
                remove_pages(dir, held());
                self.no_room = Some(error);
            }
        }
        self.no_room.is_none()
    }
}

impl Pipe {
    fn new(page_size: usize) -> io::Result<Pipe> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        // A page of the buffer may be larger than one of memory; the kernel rounds up.
        let bytes = fcntl_setpipe_size(&write, PIPE_BYTES)
            .or_else(|_| fcntl_setpipe_size(&write, page_size))?;
        Ok(Pipe { read, write, bytes })
    }

    /// Moves all full pages; returns their bytes.
    fn move_pages(&self, from: &File, to: &File) -> io::Result<u64> {
        let mut total = 0;
        loop {
            let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
            let mut rest = match splice(from, None, &self.write, None, self.bytes, flags) {
                Ok(0) | Err(Errno::AGAIN) => return Ok(total),
                Ok(bytes) => bytes,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            total += rest as u64;
            while rest > 0 {
                match splice(&self.read, None, to, None, rest, SpliceFlags::MOVE) {
                    Ok(0) => return Err(ErrorKind::WriteZero.into()),
                    Ok(bytes) => rest -= bytes,
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }
}

/// Takes the page that was being filled when tracing ended.
fn take_rest(mut raw: File, held: &mut CpuData, page_size: usize) -> io::Result<()> {
    let mut page = vec![0; page_size];
    loop {
        match raw.read(&mut page) {
            Ok(0) => return Ok(()),
            Ok(bytes) => {
                held.file.write_all(&page[..bytes])?;
                held.bytes += bytes as u64;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn open_nonblocking(path: &std::path::Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)
}
