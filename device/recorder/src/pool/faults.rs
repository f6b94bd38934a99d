// SPDX-License-Identifier: MIT OR Apache-2.0
//! Simulates a failing device for tests, over real files and real I/O. [`Disk`] asks it before each
//! operation. A test sets the faults for the recorder that the same thread starts next.
//!
//! The device has a cache, which loses all data that no sync has covered. [`Faults::crash`] returns
//! the files after a power cut at this moment, and a fault can empty the cache while the recording
//! continues. A power cut keeps nothing of a write in the cache, all of it, or any of its sectors.
//!
//! [`Disk`]: super::direct_io::Disk

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::mcap::encoder::FileRange;

mod tests;

/// A device writes each sector as a whole.
const SECTOR_BYTES: usize = 512;

/// The operations that a fault affects.
#[derive(Debug, Clone, PartialEq)]
pub enum When {
    /// These writes among all, from 0.
    Writes(Range<u64>),
    /// Writes that begin at these offsets, in the first file written there.
    Places(Range<u64>),
    /// The writes to each place at these offsets, and their repetitions with these numbers, from 0.
    Again(Range<u64>, Range<u64>),
    /// These syncs among all, from 0.
    Syncs(Range<u64>),
    WritesFor(Range<Duration>),
    SyncsFor(Range<Duration>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// The operation is not done, and returns this error.
    Fail(i32),
    /// The operation fails with this error, and the cache loses its contents.
    LoseCache(i32),
    /// The operation succeeds, and completes this much later.
    Late(Duration),
    /// The operation is not done, and reports success.
    Lie,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    pub when: When,
    pub how: How,
}

/// The effect on an operation.
pub enum Verdict {
    Go,
    /// The operation is finished, with this result.
    Done(io::Result<()>),
}

struct Cached {
    inode: u64,
    file: File,
    offset: u64,
    before: Vec<u8>,
    operation: u64,
    landed: bool,
    /// Whether the sync in flight covers it.
    covered: bool,
}

impl Cached {
    fn undo(&self, file: &File) {
        file.write_all_at(&self.before, self.offset).unwrap();
    }

    /// Undoes a write, unless it arrived. Of some writes, any of the sectors arrive. `arrived` has
    /// the offsets of sectors that a later write has replaced.
    fn undo_in_part(&self, file: &File, seed: u64, arrived: &mut HashSet<u64>) {
        let draw = |of: u64| {
            let mut hasher = DefaultHasher::new();
            (seed, self.operation, self.offset, of).hash(&mut hasher);
            hasher.finish()
        };
        let fate = draw(u64::MAX) % 4;
        for (sector, before) in (0..).zip(self.before.chunks(SECTOR_BYTES)) {
            let offset = self.offset + sector * SECTOR_BYTES as u64;
            let is_kept = match fate {
                0 => false,
                1 => true,
                _ => draw(sector) % 2 == 0,
            };
            if is_kept {
                arrived.insert(offset);
            } else if !arrived.contains(&offset) {
                file.write_all_at(before, offset).unwrap();
            }
        }
    }
}

struct Device {
    faults: Vec<Fault>,
    started: Instant,
    /// Inode and offset of the writes so far.
    writes: Vec<(u64, u64)>,
    syncs: u64,
    bad_file: Option<u64>,
    cache: Vec<Cached>,
    late: HashMap<u64, Duration>,
    held: Vec<(Instant, u64, io::Result<()>)>,
}

/// The faults of a device. Without a device, the default outside such tests, nothing fails.
#[derive(Clone, Default)]
pub struct Faults(Option<Arc<Mutex<Device>>>);

thread_local! {
    static NEXT: RefCell<(Faults, bool)> = RefCell::default();
}

impl Faults {
    /// Sets the faults of the recorder that this thread starts next.
    pub fn of_next_recorder(faults: Vec<Fault>, page_cache: bool) -> Faults {
        let device = Device {
            faults,
            started: Instant::now(),
            writes: Vec::new(),
            syncs: 0,
            bad_file: None,
            cache: Vec::new(),
            late: HashMap::new(),
            held: Vec::new(),
        };
        let faults = Faults(Some(Arc::new(Mutex::new(device))));
        NEXT.set((faults.clone(), page_cache));
        faults
    }

    pub fn take() -> Faults {
        NEXT.with_borrow_mut(|(faults, _)| std::mem::take(faults))
    }

    /// Whether that recorder uses the page cache.
    pub fn take_page_cache() -> bool {
        NEXT.with_borrow_mut(|(_, page_cache)| std::mem::take(page_cache))
    }

    fn device(&self) -> Option<MutexGuard<'_, Device>> {
        self.0.as_ref().map(|device| device.lock().unwrap())
    }

    /// Called before a write.
    pub fn write(&self, file: &File, place: FileRange, operation: u64) -> Verdict {
        let Some(mut device) = self.device() else { return Verdict::Go };
        if device.writes.is_empty() {
            // The start takes a variable time, so times count from here.
            device.started = Instant::now();
        }
        let (number, elapsed) = (device.writes.len() as u64, device.started.elapsed());
        let inode = file.metadata().unwrap().ino();
        let here = (inode, place.offset);
        let before = device.writes.iter().filter(|place| **place == here).count() as u64;
        device.writes.push(here);
        let mut bad_file = device.bad_file;
        let how = device.fault(|when| match when {
            When::Writes(numbers) => numbers.contains(&number),
            When::Places(places) => {
                places.contains(&place.offset) && *bad_file.get_or_insert(inode) == inode
            }
            When::Again(places, numbers) => {
                places.contains(&place.offset) && numbers.contains(&before)
            }
            When::WritesFor(times) => times.contains(&elapsed),
            _ => false,
        });
        device.bad_file = bad_file;
        let verdict = device.verdict(how, operation);
        if matches!(verdict, Verdict::Go) {
            device.keep(file, place, operation);
        }
        verdict
    }

    /// Called before a sync.
    pub fn sync(&self, operation: u64) -> Verdict {
        let Some(mut device) = self.device() else { return Verdict::Go };
        let (number, elapsed) = (device.syncs, device.started.elapsed());
        device.syncs += 1;
        device.cache.iter_mut().for_each(|cached| cached.covered = cached.landed);
        let how = device.fault(|when| match when {
            When::Syncs(numbers) => numbers.contains(&number),
            When::SyncsFor(times) => times.contains(&elapsed),
            _ => false,
        });
        device.verdict(how, operation)
    }

    /// Called with the kernel's result. Returns None if it is reported later.
    pub fn done(
        &self,
        operation: u64,
        is_sync: bool,
        result: io::Result<()>,
    ) -> Option<io::Result<()>> {
        let Some(mut device) = self.device() else { return Some(result) };
        if is_sync && result.is_ok() {
            device.cache.retain(|cached| !cached.covered);
        } else if !is_sync {
            let ours = |cached: &&mut Cached| cached.operation == operation;
            device.cache.iter_mut().filter(ours).for_each(|cached| cached.landed = true);
        }
        match device.late.remove(&operation) {
            None => Some(result),
            Some(later) => {
                device.held.push((Instant::now() + later, operation, result));
                None
            }
        }
    }

    pub fn is_holding(&self) -> bool {
        self.device().is_some_and(|device| !device.held.is_empty())
    }

    pub fn next_due(&self) -> Option<(u64, io::Result<()>)> {
        let mut device = self.device()?;
        let due = device.held.iter().position(|(at, ..)| *at <= Instant::now())?;
        let (_, operation, result) = device.held.swap_remove(due);
        Some((operation, result))
    }

    /// A copy of the segments after a simulated power cut: without all data in the cache, or with a
    /// part of it that the seed selects.
    pub fn crash(&self, dir: &Path, seed: Option<u64>) -> TempDir {
        let device = self.device().unwrap();
        let left = tempfile::tempdir().unwrap();
        for entry in fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let path = left.path().join(entry.file_name());
            fs::copy(entry.path(), &path).unwrap();
            let file = OpenOptions::new().write(true).open(path).unwrap();
            let inode = entry.metadata().unwrap().ino();
            let of_file = device.cache.iter().rev().filter(|cached| cached.inode == inode);
            let mut arrived = HashSet::new();
            of_file.for_each(|cached| match seed {
                None => cached.undo(&file),
                Some(seed) => cached.undo_in_part(&file, seed, &mut arrived),
            });
        }
        left
    }
}

impl Device {
    fn fault(&self, mut is_now: impl FnMut(&When) -> bool) -> Option<How> {
        self.faults.iter().find(|fault| is_now(&fault.when)).map(|fault| fault.how)
    }

    fn verdict(&mut self, how: Option<How>, operation: u64) -> Verdict {
        match how {
            None => Verdict::Go,
            Some(How::Fail(error)) => Verdict::Done(Err(io::Error::from_raw_os_error(error))),
            Some(How::LoseCache(error)) => {
                self.cache.drain(..).rev().for_each(|cached| cached.undo(&cached.file));
                Verdict::Done(Err(io::Error::from_raw_os_error(error)))
            }
            Some(How::Late(later)) => {
                self.late.insert(operation, later);
                Verdict::Go
            }
            Some(How::Lie) => {
                self.cache.iter_mut().for_each(|cached| cached.covered = false);
                Verdict::Done(Ok(()))
            }
        }
    }

    fn keep(&mut self, file: &File, place: FileRange, operation: u64) {
        // Opened without O_DIRECT, which requires aligned memory.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
        let mut before = vec![0; place.bytes];
        file.read_exact_at(&mut before, place.offset).unwrap();
        let inode = file.metadata().unwrap().ino();
        self.cache.push(Cached {
            inode,
            file,
            offset: place.offset,
            before,
            operation,
            landed: false,
            covered: false,
        });
    }
}
