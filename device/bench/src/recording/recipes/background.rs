// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ext4 recording paper's background load, in a third thread. Once per period it truncates
//! another file of the recording's size by a step (BG_TRUNC), or truncates it and preallocates its
//! whole size again (BG_ALL). `session` starts it.
//!
//! The paper gives 256 KB per 5 ms for records of 16 KB and a file of 100 MB: sixteen records per
//! period.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use rustix::fs::{FallocateFlags, fallocate};
use steadyio_core::latency::Latencies;
use steadyio_recorder::source::{now_ns, sleep_until_ns};

use crate::recording::place::named;
use crate::recording::recipe::Background;

/// The number of records per truncation.
const CUT_RECORDS: u64 = 16;

/// The load and its rate.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The kind of load.
    pub background: Background,
    /// The directory of its files.
    pub dir: PathBuf,
    /// The time between two truncations.
    pub period_ns: u64,
    /// The size of a record.
    pub record_bytes: u64,
    /// The size of its files.
    pub file_bytes: u64,
    /// The size of the whole recording.
    pub total_bytes: u64,
}

#[derive(Debug, Clone, Default)]
pub struct BackgroundReport {
    /// The times of ftruncate() calls.
    pub truncates: Latencies,
    /// The times of fallocate() calls.
    pub fallocates: Latencies,
}

/// The thread. Its files are removed when it ends.
#[derive(Debug)]
pub struct BackgroundThread {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<BackgroundReport>>,
}

impl Plan {
    /// The number of files. BG_TRUNC needs enough files to truncate all the time; BG_ALL recreates
    /// its own.
    fn files(&self) -> u64 {
        match self.background {
            Background::None => 0,
            Background::All => 1,
            Background::Truncate => (CUT_RECORDS * self.total_bytes).div_ceil(self.file_bytes),
        }
    }

    fn path(&self, number: u64) -> PathBuf {
        self.dir.join(format!("background-{number:04}.raw"))
    }

    /// Makes the files and starts truncating them; None without a load.
    pub fn start(self) -> io::Result<Option<BackgroundThread>> {
        if self.background == Background::None {
            return Ok(None);
        }
        let files: Vec<PathBuf> = (0..self.files()).map(|number| self.path(number)).collect();
        for path in &files {
            let file = open(path)?;
            allocate(&file, self.file_bytes)
                .and_then(|()| file.sync_all())
                .inspect_err(|_| remove(&files))
                .map_err(|error| named(path, error))?;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::Builder::new().name("steady-background".into()).spawn(move || {
            let report = self.cut_all(&files, &stopped);
            remove(&files);
            report
        })?;
        Ok(Some(BackgroundThread { stop, thread }))
    }

    fn cut_all(&self, files: &[PathBuf], stop: &AtomicBool) -> io::Result<BackgroundReport> {
        let mut report = BackgroundReport::default();
        let mut due_ns = now_ns();
        for path in files {
            let file = open(path)?;
            let mut length = self.file_bytes;
            while length > 0 {
                due_ns += self.period_ns;
                sleep_until_ns(due_ns)?;
                if stop.load(Ordering::Relaxed) {
                    return Ok(report);
                }
                length = length.saturating_sub(CUT_RECORDS * self.record_bytes);
                let start_ns = now_ns();
                file.set_len(length)?;
                report.truncates.add(now_ns() - start_ns);
                if self.background == Background::All {
                    let start_ns = now_ns();
                    allocate(&file, self.file_bytes)?;
                    report.fallocates.add(now_ns() - start_ns);
                    length = self.file_bytes;
                }
            }
        }
        Ok(report)
    }
}

impl BackgroundThread {
    /// Ends the thread and removes its files.
    pub fn finish(self) -> io::Result<BackgroundReport> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| io::Error::other("the background thread panicked"))?
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).open(path)
}

/// Allocates blocks, and sets the size.
pub fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    Ok(fallocate(file, FallocateFlags::empty(), 0, bytes)?)
}

fn remove(files: &[PathBuf]) {
    for path in files {
        // A file left over only takes space.
        let _ = fs::remove_file(path);
    }
}
