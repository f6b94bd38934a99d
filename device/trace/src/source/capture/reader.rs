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
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use steadyio_core::scheduling::set_fifo;

use super::cpu_data::CpuData;
use super::folder::{Moment, create_pages, remove_pages};
use super::watch::{Slow, Watch};
use super::{CaptureError, Options};
use crate::source::tracefs::Instance;

/// Pages move through a pipe in such pieces, if the system allows one as large.
const PIPE_BYTES: usize = 1 << 20;

const PRIORITY: u8 = 1;

/// How often a page that is not full is taken too, where somebody looks at the events.
const PARTS_EVERY: Duration = Duration::from_millis(500);

/// Why the thread ended the tracing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndReason {
    MemoryFull,
    /// This I/O took longer than it may.
    Slow(Slow),
}

/// The thread, from outside.
#[derive(Debug)]
pub struct Reader {
    thread: Option<JoinHandle<io::Result<Taken>>>,
    end: Arc<AtomicBool>,
    reason: Arc<Mutex<Option<EndReason>>>,
}

/// What the thread has taken.
#[derive(Debug, Default)]
pub struct Taken {
    pub held: Vec<CpuData>,
    /// Why the folder could not take it when memory was full; then all of it is in memory.
    pub no_room: Option<io::Error>,
    /// Since when all events are there, in ns, if older ones had to make room.
    pub kept_since_ns: Option<u64>,
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
    reason: Arc<Mutex<Option<EndReason>>>,
    /// Only the newest pages are kept.
    ring: Option<Ring>,
    watch: Option<Watch>,
    parts_taken: Instant,
    /// End the tracing by `0`.
    tracing_on: Vec<File>,
}

/// The pages before those that are being filled. When these are half of what memory may hold, older ones are thrown away.
struct Ring {
    older: Vec<CpuData>,
    /// When the oldest page that is kept may begin, and when the present ones may, in ns.
    since_ns: (u64, u64),
    thrown_away: bool,
}

struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
    bytes: usize,
}

impl Reader {
    /// Starts it for all CPUs of these instances; the second is of the requested threads.
    pub fn start(
        instances: &[&Instance],
        page_size: usize,
        options: &Options,
        watch: Option<Watch>,
    ) -> Result<Reader, CaptureError> {
        let hold = |what: &str| {
            let what = what.to_string();
            move |error| CaptureError::Hold { what, error }
        };
        let mut cpus = Vec::new();
        let mut tracing_on = Vec::new();
        for (number, instance) in instances.iter().enumerate() {
            for cpu in instance.cpus()? {
                let path = instance.path(&format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
                let raw = open_nonblocking(&path).map_err(hold(&path.to_string_lossy()))?;
                let data = CpuData::in_memory(cpu, number > 0);
                cpus.push((raw, data.map_err(hold("memory for the trace"))?));
            }
            let path = instance.path("tracing_on");
            let file = File::options().write(true).open(&path);
            tracing_on.push(file.map_err(hold(&path.to_string_lossy()))?);
        }
        let end = Arc::new(AtomicBool::new(false));
        let reason = Arc::new(Mutex::new(None));
        let ring = options.ring || watch.is_some();
        let ring = ring.then(|| Ring { older: Vec::new(), since_ns: (0, 0), thrown_away: false });
        let mut work = Work {
            end: Arc::clone(&end),
            cpus,
            pipe: Pipe::new(page_size).map_err(hold("a pipe"))?,
            page_size,
            period: options.period,
            memory_bytes_max: options.memory_bytes_max,
            keep: options.keep.clone(),
            no_room: None,
            reason: Arc::clone(&reason),
            ring,
            watch,
            parts_taken: Instant::now(),
            tracing_on,
        };
        let thread = thread::Builder::new().name("steady-trace".into());
        let thread = thread.spawn(move || work.run()).map_err(hold("a thread"))?;
        Ok(Reader { thread: Some(thread), end, reason })
    }

    /// Whether it has ended without being told to.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_some_and(JoinHandle::is_finished)
    }

    /// Why it has, unless reading failed.
    pub fn end_reason(&self) -> Option<EndReason> {
        self.reason.lock().ok()?.clone()
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
            if let Some(slow) = self.look()? {
                self.end_for(EndReason::Slow(slow));
                break;
            }
        }
        for file in &mut self.tracing_on {
            file.write_all(b"0")?;
        }
        self.take_full_pages()?;
        let mut all = Vec::new();
        for (raw, held) in &mut self.cpus {
            take_rest(raw, held, self.page_size)?;
        }
        let mut older = Vec::new();
        let mut kept_since_ns = None;
        if let Some(ring) = self.ring.take() {
            kept_since_ns = ring.thrown_away.then_some(ring.since_ns.0);
            older = ring.older;
        }
        let mut older = older.into_iter();
        for (_, held) in self.cpus.drain(..) {
            all.push(match older.next() {
                Some(before) => before.followed_by(&held)?,
                None => held,
            });
        }
        Ok(Taken { held: all, no_room: self.no_room.take(), kept_since_ns })
    }

    fn end_for(&self, why: EndReason) {
        if let Ok(mut reason) = self.reason.lock() {
            *reason = Some(why);
        }
    }

    /// An I/O that took too long, if somebody wants to know.
    fn look(&mut self) -> io::Result<Option<Slow>> {
        let Some(watch) = &mut self.watch else { return Ok(None) };
        if self.parts_taken.elapsed() >= PARTS_EVERY {
            self.parts_taken = Instant::now();
            for (raw, held) in &mut self.cpus {
                take_part(raw, held, self.page_size)?;
            }
        }
        Ok(watch.look(self.cpus.iter().map(|(_, held)| held)))
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
        if self.ring.is_some() {
            return bytes < self.memory_bytes_max / 2 || self.throw_away_older();
        }
        if bytes < self.memory_bytes_max {
            return true;
        }
        let Some(dir) = &self.keep else {
            self.end_for(EndReason::MemoryFull);
            return false;
        };
        let held = || self.cpus.iter().map(|(_, held)| held);
        let copies: io::Result<Vec<File>> =
            held().map(|held| held.copy_to(create_pages(dir, held)?)).collect();
        match copies {
            Ok(copies) => {
                self.cpus.iter_mut().zip(copies).for_each(|((_, held), to)| held.go_on_in(to));
                self.memory_bytes_max = u64::MAX;
            }
            Err(error) => {
                remove_pages(dir, held());
                self.no_room = Some(error);
                self.end_for(EndReason::MemoryFull);
            }
        }
        self.no_room.is_none()
    }
}

impl Work {
    /// The present pages become the older ones; false if there is no memory for others.
    fn throw_away_older(&mut self) -> bool {
        let fresh: io::Result<Vec<CpuData>> = self
            .cpus
            .iter()
            .map(|(_, held)| CpuData::in_memory(held.cpu, held.of_threads))
            .collect();
        let Ok(fresh) = fresh else {
            self.end_for(EndReason::MemoryFull);
            return false;
        };
        let before = self.cpus.iter_mut().zip(fresh);
        let filled: Vec<CpuData> =
            before.map(|((_, held), fresh)| std::mem::replace(held, fresh)).collect();
        if let Some(ring) = &mut self.ring {
            ring.thrown_away |= !ring.older.is_empty();
            ring.older = filled;
            ring.since_ns = (ring.since_ns.1, Moment::now().mono_ns);
        }
        if let Some(watch) = &mut self.watch {
            watch.restart();
        }
        true
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

/// Takes the page that is being filled, and what is behind it. Tracing must be off: reading may be traced itself.
fn take_rest(raw: &mut File, held: &mut CpuData, page_size: usize) -> io::Result<()> {
    while take_part(raw, held, page_size)? {}
    Ok(())
}

/// Takes what is in the page that is being filled; false if there is nothing.
fn take_part(raw: &mut File, held: &mut CpuData, page_size: usize) -> io::Result<bool> {
    let mut page = vec![0; page_size];
    match raw.read(&mut page) {
        Ok(bytes) => {
            held.file.write_all(&page[..bytes])?;
            held.bytes += bytes as u64;
            Ok(bytes > 0)
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(true),
        Err(error) => Err(error),
    }
}

fn open_nonblocking(path: &std::path::Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)
}
