// SPDX-License-Identifier: MIT OR Apache-2.0
//! Looks at `/proc/PID/fd` while tracing, for the paths of files. [`super::Capture`] calls it.
//!
//! Before Linux 6.19 the event of an open has no path, but the address of one. A look shows the
//! files that stay open for some time, no matter which thread opened them.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use super::folder::Moment;
use super::names::numbers;
use crate::event::Dev;
use crate::open_files::{File, OpenFiles, Seen};

/// The pauses between looks: a tenth of the time that the trace has run, within these limits.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Looking takes at most 1 % of the time of a CPU.
const PAUSE_PER_LOOK: u32 = 100;

#[derive(Debug)]
pub(super) struct Looks {
    began: Instant,
    next: Instant,
    /// The index in [`OpenFiles::files`] of each file of the last look, by process and descriptor.
    last: HashMap<(u32, i32), usize>,
}

impl Looks {
    pub fn new() -> Looks {
        Looks { began: Instant::now(), next: Instant::now(), last: HashMap::new() }
    }

    pub fn is_due(&self) -> bool {
        Instant::now() >= self.next
    }

    /// Adds a look at these processes to `known`, unless tracing ended meanwhile: a file may then
    /// have been closed without an event.
    pub fn look(
        &mut self,
        processes: BTreeSet<u32>,
        known: &mut OpenFiles,
        is_traced: impl FnOnce() -> bool,
    ) {
        let (began, from_ns) = (Instant::now(), Moment::now().mono_ns);
        let found: Vec<_> = processes.into_iter().flat_map(files_of).collect();
        let to_ns = Moment::now().mono_ns;
        if is_traced() {
            self.add((from_ns, to_ns), found, known);
        }
        let pause = (self.began.elapsed() / 10).clamp(PAUSE_MIN, PAUSE_MAX);
        self.next = Instant::now() + pause.max(began.elapsed() * PAUSE_PER_LOOK);
    }

    fn add(&mut self, times: (u64, u64), found: Vec<(u32, i32, File)>, known: &mut OpenFiles) {
        let look = known.looks.len();
        known.looks.push(times);
        let last = std::mem::take(&mut self.last);
        for (process, fd, file) in found {
            let before = last.get(&(process, fd)).copied();
            let place = match before.filter(|place| known.files[*place].file == file) {
                Some(place) => place,
                None => {
                    known.files.push(Seen { process, fd, looks: (look, look), file });
                    known.files.len() - 1
                }
            };
            known.files[place].looks.1 = look;
            self.last.insert((process, fd), place);
        }
    }
}

/// The files that a process has open: descriptor and file. Pipes and sockets have no path.
fn files_of(process: u32) -> impl Iterator<Item = (u32, i32, File)> {
    let dir = format!("/proc/{process}/fd");
    numbers(&dir).into_iter().filter_map(move |fd| {
        let link = format!("{dir}/{fd}");
        let path = fs::read_link(&link).ok()?.to_string_lossy().into_owned();
        if !path.starts_with('/') {
            return None;
        }
        // A network file system must not be asked: it may not answer.
        let found = statx(CWD, &link, AtFlags::STATX_DONT_SYNC, StatxFlags::INO).ok()?;
        let (major, minor) = (found.stx_dev_major, found.stx_dev_minor);
        let device = Dev { major, minor }.to_string();
        Some((process, i32::try_from(fd).ok()?, File { path, device, inode: found.stx_ino }))
    })
}
