// SPDX-License-Identifier: MIT OR Apache-2.0
//! The thread that moves the pages of all CPUs' buffers into memory. [`super::Capture`] starts and
//! ends it.
//!
//! It wakes at fixed times and does not wait for pages, because a waiting reader makes each writer
//! check whether to wake it. While tracing it reads full pages only: the kernel moves these through
//! a pipe without a copy. It would copy a partly filled page record by record.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::fd::OwnedFd;
use rustix::io::{Errno, retry_on_intr};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use steadyio_core::scheduling::set_fifo;

use super::cpu_data::{CpuData, bytes, in_memory};
use super::errors::because;
use super::folder::{Moment, create_pages, remove_pages};
use super::options::Options;
use super::watch::{Interval, Slow, Watch};
use crate::source::tracefs::Instance;

/// The requested capacity of the pipe. The system may grant less.
const PIPE_BYTES: usize = 1 << 20;

const PRIORITY: u8 = 1;

/// The interval at which partly filled pages are read too, if events are looked at while tracing.
const PARTS_EVERY: Duration = Duration::from_millis(500);

/// The reason why the thread ended the tracing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndReason {
    MemoryFull,
    /// This I/O exceeded the trigger's limit.
    Slow(Slow),
}

/// The handle of the thread.
#[derive(Debug)]
pub struct Reader {
    thread: Option<JoinHandle<io::Result<Taken>>>,
    /// Dropping it ends the thread.
    end: Option<Sender<()>>,
    reason: Arc<OnceLock<EndReason>>,
    intervals: Receiver<Vec<Interval>>,
}

#[derive(Debug, Default)]
pub struct Taken {
    pub held: Vec<CpuData>,
    /// The error that prevented continuing in the folder when memory was full. All data is then in
    /// memory.
    pub no_room: Option<io::Error>,
    /// The time in ns from which no event is missing, if older events were discarded.
    pub kept_since_ns: Option<u64>,
}

struct Work {
    cpus: Vec<(File, CpuData)>,
    pipe: Pipe,
    page_size: usize,
    options: Options,
    no_room: Option<io::Error>,
    reason: Arc<OnceLock<EndReason>>,
    /// The earliest times of the older and of the present pages of a ring, in ns. `None`: the
    /// beginning of the trace.
    since_ns: (Option<u64>, Option<u64>),
    watch: Option<Watch>,
    parts_taken: Instant,
    interval_began: Instant,
    intervals: Sender<Vec<Interval>>,
    /// Writing `0` to these files ends the tracing.
    tracing_on: Vec<File>,
}

impl Reader {
    /// Starts the thread for all CPUs of these instances. The second instance has the events of the
    /// requested threads.
    pub fn start(
        instances: &[&Instance],
        page_size: usize,
        options: &Options,
        watch: Option<Watch>,
    ) -> io::Result<Reader> {
        let (mut cpus, mut tracing_on) = (Vec::new(), Vec::new());
        for (number, instance) in instances.iter().enumerate() {
            for cpu in instance.cpus()? {
                let path = instance.path(&format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
                let raw = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(&path);
                let raw = raw.map_err(because(path.display()))?;
                let file = in_memory().map_err(because("memory for the trace"))?;
                let (of_threads, in_folder) = (number > 0, false);
                cpus.push((raw, CpuData { cpu, of_threads, older: None, file, in_folder }));
            }
            let path = instance.path("tracing_on");
            let file = File::options().write(true).open(&path);
            tracing_on.push(file.map_err(because(path.display()))?);
        }
        let reason = Arc::new(OnceLock::new());
        let (to_outside, intervals) = channel();
        let work = Work {
            cpus,
            pipe: Pipe::new(page_size).map_err(because("a pipe"))?,
            page_size,
            options: options.clone(),
            no_room: None,
            reason: Arc::clone(&reason),
            since_ns: (None, None),
            watch,
            parts_taken: Instant::now(),
            interval_began: Instant::now(),
            intervals: to_outside,
            tracing_on,
        };
        let (end, ended) = channel();
        let period = options.period;
        let is_told = move || ended.recv_timeout(period) == Err(RecvTimeoutError::Disconnected);
        let thread = thread::Builder::new().name("steady-trace".into());
        let thread = thread.spawn(move || work.run(is_told)).map_err(because("a thread"))?;
        Ok(Reader { thread: Some(thread), end: Some(end), reason, intervals })
    }

    /// Whether the thread has ended by itself, because memory is full or reading failed;
    /// [`Capture::stop`] returns the reason.
    ///
    /// [`Capture::stop`]: super::Capture::stop
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_some_and(JoinHandle::is_finished)
    }

    /// The statistics of each interval that has ended since the last call.
    pub fn intervals(&self) -> impl Iterator<Item = Vec<Interval>> {
        self.intervals.try_iter()
    }

    /// The reason why the thread ended, unless reading failed.
    pub fn end_reason(&self) -> Option<EndReason> {
        self.reason.get().cloned()
    }

    /// Reads the rest; tracing must be off.
    pub fn finish(&mut self) -> io::Result<Taken> {
        self.end = None;
        let Some(thread) = self.thread.take() else { return Ok(Taken::default()) };
        let panicked = |_| Err(io::Error::other("the reading thread panicked"));
        thread.join().unwrap_or_else(panicked).map_err(because("reading the trace"))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // The thread has open files of the instance, which could not be removed otherwise.
        let _ = self.finish();
    }
}

impl Work {
    fn run(mut self, is_told: impl Fn() -> bool) -> io::Result<Taken> {
        // Without a real-time priority, busy programs delay this thread until a buffer is full and
        // events are lost. The thread runs briefly, so the lowest priority suffices. If the kernel
        // refuses it, losses are reported.
        let _ = set_fifo(PRIORITY);
        while self.make_room() && !is_told() {
            self.take_full_pages()?;
            if let Some(slow) = self.look()? {
                let _ = self.reason.set(EndReason::Slow(slow));
                break;
            }
        }
        for file in &mut self.tracing_on {
            file.write_all(b"0")?;
        }
        self.take_full_pages()?;
        for (raw, held) in &mut self.cpus {
            while take_part(raw, held, self.page_size)? {}
        }
        let held = self.cpus.into_iter().map(|(_, held)| held).collect();
        Ok(Taken { held, no_room: self.no_room, kept_since_ns: self.since_ns.0 })
    }

    /// Looks at the new events: returns an I/O that fired the trigger, and sends the statistics of
    /// an interval that is over.
    fn look(&mut self) -> io::Result<Option<Slow>> {
        let Some(watch) = &mut self.watch else { return Ok(None) };
        if self.parts_taken.elapsed() >= PARTS_EVERY {
            self.parts_taken = Instant::now();
            for (raw, held) in &mut self.cpus {
                take_part(raw, held, self.page_size)?;
            }
        }
        let slow = watch.look(self.cpus.iter().map(|(_, held)| held));
        if self.options.interval.is_some_and(|interval| self.interval_began.elapsed() >= interval) {
            self.interval_began = Instant::now();
            // The receiver may be gone.
            let _ = self.intervals.send(watch.interval());
        }
        Ok(slow)
    }

    fn take_full_pages(&mut self) -> io::Result<()> {
        self.cpus.iter().try_for_each(|(raw, held)| self.pipe.move_pages(raw, &held.file))
    }

    /// Makes room when memory is full: continues in the folder, or discards the older pages.
    /// Returns false if neither is possible.
    fn make_room(&mut self) -> bool {
        let held_bytes: u64 = self.cpus.iter().map(|(_, held)| bytes(&held.file)).sum();
        // In a ring, the older pages have the other half.
        let is_ring = self.options.ring || self.options.trigger.is_some();
        let part = if is_ring { 2 } else { 1 };
        if held_bytes < self.options.memory_bytes_max / part {
            return true;
        }
        let has_room = match (is_ring, self.options.keep.clone()) {
            (true, _) => self.throw_away_older().is_ok(),
            (false, None) => false,
            (false, Some(dir)) => {
                self.no_room = self.go_on_in(&dir).err();
                self.no_room.is_none()
            }
        };
        if !has_room {
            let _ = self.reason.set(EndReason::MemoryFull);
        }
        has_room
    }

    fn go_on_in(&mut self, dir: &Path) -> io::Result<()> {
        let held = || self.cpus.iter().map(|(_, held)| held);
        let copies = held().map(|held| held.copy_to(create_pages(dir, held)?));
        let copies: io::Result<Vec<File>> = copies.collect();
        let copies = copies.inspect_err(|_| remove_pages(dir, held()))?;
        self.cpus.iter_mut().zip(copies).for_each(|((_, held), copy)| held.go_on_in(copy));
        self.options.memory_bytes_max = u64::MAX;
        Ok(())
    }

    /// Discards the older pages; the present pages become the older ones.
    fn throw_away_older(&mut self) -> io::Result<()> {
        let fresh: Vec<File> = self.cpus.iter().map(|_| in_memory()).collect::<io::Result<_>>()?;
        for ((_, held), fresh) in self.cpus.iter_mut().zip(fresh) {
            held.older = Some(std::mem::replace(&mut held.file, fresh));
        }
        self.since_ns = (self.since_ns.1, Some(Moment::now().mono_ns));
        self.watch.iter_mut().for_each(|watch| watch.seen.clear());
        Ok(())
    }
}

struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
    bytes: usize,
}

impl Pipe {
    fn new(page_size: usize) -> io::Result<Pipe> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        // A page of the buffer may be larger than a page of memory; the kernel rounds up.
        let bytes = fcntl_setpipe_size(&write, PIPE_BYTES)
            .or_else(|_| fcntl_setpipe_size(&write, page_size))?;
        Ok(Pipe { read, write, bytes })
    }

    fn move_pages(&self, from: &File, to: &File) -> io::Result<()> {
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        let into_pipe = || splice(from, None, &self.write, None, self.bytes, flags);
        loop {
            let mut rest = match retry_on_intr(into_pipe) {
                Ok(0) | Err(Errno::AGAIN) => return Ok(()),
                bytes => bytes?,
            };
            while rest > 0 {
                let out = || splice(&self.read, None, to, None, rest, SpliceFlags::MOVE);
                match retry_on_intr(out)? {
                    0 => return Err(ErrorKind::WriteZero.into()),
                    bytes => rest -= bytes,
                }
            }
        }
    }
}

/// Reads the data of a partly filled page; false if there is none. Tracing must be off to get all
/// data, because reading may be traced itself.
fn take_part(raw: &mut File, held: &mut CpuData, page_size: usize) -> io::Result<bool> {
    let mut page = vec![0; page_size];
    match raw.read(&mut page) {
        Ok(bytes) => held.file.write_all(&page[..bytes]).map(|()| bytes > 0),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(true),
        Err(error) => Err(error),
    }
}
