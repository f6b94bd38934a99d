// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the file of each descriptor, from looks at `/proc` and from the events that close files.
//! `callers` calls it.
//!
//! A look shows the file of a descriptor at one moment. It was the same file before and after, as
//! long as no event may have closed it. Nothing is guessed: a descriptor without a look between two
//! such events has no file.

use std::collections::{HashMap, HashSet};
use std::mem::take;

use indexmap::IndexSet;

use crate::event::Dev;
use crate::io::{Processes, Request, Trace};
use crate::open_files::{File, OpenFiles, Seen};

/// A descriptor between two events that may have closed it.
#[derive(Clone, Copy, Debug, Default)]
struct Opening {
    /// The number of its file, once a look showed it.
    file: Option<usize>,
    /// Whether two looks showed different files.
    is_odd: bool,
    /// From the first look to the event that may have closed it, in ns.
    open_ns: (u64, u64),
}

#[derive(Debug, Default)]
pub(super) struct Descriptors {
    seen: OpenFiles,
    now_ns: u64,
    /// The index of the look that has not ended yet.
    look: usize,
    /// The number of files whose first look has ended, and the indices of those of the last look.
    begun: usize,
    shown: Vec<usize>,
    /// Descriptors that may have been closed during the present look: a process, with one of them or
    /// (`None`) all.
    closed: HashSet<(u32, Option<i32>)>,
    files: IndexSet<File>,
    openings: Vec<Opening>,
    /// Those with a file, in the order in which looks showed it.
    named: Vec<usize>,
    /// The present opening of each process's descriptors.
    present: HashMap<u32, HashMap<i32, usize>>,
}

impl Descriptors {
    pub fn new(seen: OpenFiles) -> Descriptors {
        Descriptors { seen, ..Descriptors::default() }
    }

    /// The number of the present opening; `None` if no file will be known.
    pub fn opening(&mut self, process: u32, fd: i32) -> Option<usize> {
        if self.seen.looks.is_empty() {
            return None;
        }
        let new = || {
            self.openings.push(Opening { open_ns: (0, u64::MAX), ..Opening::default() });
            self.openings.len() - 1
        };
        Some(*self.present.entry(process).or_default().entry(fd).or_insert_with(new))
    }

    /// Takes the looks that ended before this moment.
    pub fn take_looks(&mut self, now_ns: u64, processes: &Processes) {
        self.now_ns = now_ns;
        while let Some((from_ns, _)) = self.present_look().filter(|(_, to_ns)| *to_ns < now_ns) {
            let new = self.seen.files.iter().skip(self.begun);
            let new = new.take_while(|seen| seen.looks.0 <= self.look).count();
            self.shown.extend(self.begun..self.begun + new);
            self.begun += new;
            self.shown.retain(|place| self.seen.files[*place].looks.1 >= self.look);
            let closed = take(&mut self.closed);
            for place in self.shown.clone() {
                let Seen { process, fd, ref file, .. } = self.seen.files[place];
                let process = processes.of(process);
                if ![None, Some(fd)].iter().any(|fd| closed.contains(&(process, *fd))) {
                    let file = self.files.insert_full(file.clone()).0;
                    self.name(process, fd, file, from_ns);
                }
            }
            self.look += 1;
        }
    }

    fn present_look(&self) -> Option<(u64, u64)> {
        self.seen.looks.get(self.look).copied()
    }

    fn name(&mut self, process: u32, fd: i32, file: usize, from_ns: u64) {
        let Some(number) = self.opening(process, fd) else { return };
        let opening = &mut self.openings[number];
        // Not the path: a file may have been moved.
        let inode_of = |file: usize| (&self.files[file].device, self.files[file].inode);
        match opening.file {
            None if !opening.is_odd => {
                (opening.file, opening.open_ns.0) = (Some(file), from_ns);
                self.named.push(number);
            }
            Some(known) if inode_of(known) != inode_of(file) => {
                (opening.file, opening.is_odd) = (None, true);
            }
            _ => {}
        }
    }

    /// The process may close this descriptor now, or (`None`) any. A look that goes on shows the
    /// file before or after that.
    pub fn close(&mut self, process: u32, fd: Option<i32>) {
        if self.seen.looks.is_empty() {
            return;
        }
        let present = self.present.entry(process).or_default();
        let closed: Vec<usize> = match fd {
            Some(fd) => present.remove(&fd).into_iter().collect(),
            None => take(present).into_values().collect(),
        };
        for opening in closed {
            self.openings[opening].open_ns.1 = self.now_ns;
        }
        if self.present_look().is_some_and(|(from_ns, _)| from_ns <= self.now_ns) {
            self.closed.insert((process, fd));
        }
    }

    /// Events after `since_ns` were lost, and files may have been closed since then.
    pub fn forget(&mut self, since_ns: u64) {
        let kept = self.named.partition_point(|of| self.openings[*of].open_ns.0 <= since_ns);
        for opening in self.named.drain(kept..) {
            self.openings[opening].file = None;
        }
        for opening in take(&mut self.present).into_values().flat_map(HashMap::into_values) {
            self.openings[opening].open_ns.1 = since_ns;
        }
        if self.present_look().is_some_and(|(from_ns, _)| from_ns <= self.now_ns) {
            self.look += 1;
        }
    }

    /// Ends the trace: numbers in I/Os and calls become those of [`Trace::files`]. A request for an
    /// inode has the file that was open with it.
    pub fn finish(mut self, trace: &mut Trace) {
        self.take_looks(u64::MAX, &trace.processes);
        for io in trace.ios.iter_mut().chain(&mut trace.calls_without_request) {
            io.file = io.file.and_then(|number| self.openings.get(number)?.file);
        }
        let mut of_inodes: HashMap<(Dev, u64), Vec<(Opening, usize)>> = HashMap::new();
        for opening in &self.openings {
            let Some(number) = opening.file else { continue };
            let file = &self.files[number];
            let Some(dev) = Dev::parse(&file.device) else { continue };
            of_inodes.entry((dev, file.inode)).or_default().push((*opening, number));
        }
        for request in &mut trace.requests {
            request.file = file_of(request, &of_inodes);
        }
        trace.files = self.files.into_iter().collect();
    }
}

/// The file of a request's inode, if it was open: its inode has then no other file. The file system
/// must be one through which the request came.
fn file_of(
    request: &Request,
    of_inodes: &HashMap<(Dev, u64), Vec<(Opening, usize)>>,
) -> Option<usize> {
    let inode = request.origin.inode()?;
    let devs = request.through.iter().chain([&request.dev]);
    let openings = devs.filter_map(|dev| of_inodes.get(&(*dev, inode))).flatten();
    let was_open = |(opening, _): &&(Opening, usize)| {
        let (from_ns, to_ns) = opening.open_ns;
        (from_ns..to_ns).contains(&request.begin_ns())
    };
    let mut files = openings.filter(was_open).map(|(_, file)| *file);
    let first = files.next()?;
    files.all(|file| file == first).then_some(first)
}
