// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pages of all CPUs as one stream of events in the order of their time.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::io::Read;
use std::rc::Rc;

use super::decode::Decoder;
use super::format::PageFormat;
use super::merge::Merge;
use super::ring::{self, BadPage, Entry};
use super::{Position, Problem};
use crate::event::{Comm, Event, EventKind};

/// The pages of one CPU, oldest first.
pub struct CpuPages<'a> {
    pub cpu: u32,
    /// For problems: where the pages come from.
    pub file: String,
    /// Whole pages, one behind the other.
    pub pages: Box<dyn Read + 'a>,
}

/// The events of all CPUs, with problems between them.
pub struct Merged<'a> {
    cpus: Merge<OneCpu<'a>>,
    /// The name that an event of each thread carried last. Only some do.
    latest: HashMap<u32, Comm>,
    first: FirstNames,
}

/// The first name of each thread, of a page that has been read but not been given to its end: better than none.
type FirstNames = Rc<RefCell<HashMap<u32, Comm>>>;

/// One CPU: what is still to be given of its current page.
struct OneCpu<'a> {
    from: CpuPages<'a>,
    page: Vec<u8>,
    /// Where `page` begins in `from`.
    page_offset: u64,
    problems: VecDeque<Problem>,
    events: VecDeque<Event>,
    latest_ns: u64,
    format: PageFormat,
    decoder: &'a Decoder,
    first_names: FirstNames,
}

impl<'a> Merged<'a> {
    /// Begins to read; `comms` holds the names that are known from elsewhere.
    pub fn new(
        cpus: Vec<CpuPages<'a>>,
        format: PageFormat,
        decoder: &'a Decoder,
        comms: HashMap<u32, Comm>,
    ) -> Merged<'a> {
        let first = FirstNames::default();
        let cpus = cpus.into_iter().map(|from| OneCpu {
            from,
            page: Vec::new(),
            page_offset: 0,
            problems: VecDeque::new(),
            events: VecDeque::new(),
            latest_ns: 0,
            format,
            decoder,
            first_names: Rc::clone(&first),
        });
        Merged { cpus: Merge::new(cpus.collect()), latest: comms, first }
    }

    /// When the last event was that was read of one of the buffers, in the order in which they were given.
    pub fn latest_ns(&self, buffer: usize) -> u64 {
        self.cpus.sources[buffer].latest_ns
    }
}

impl Iterator for Merged<'_> {
    type Item = Result<Event, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut event = match self.cpus.next()? {
            Ok(event) => event,
            problem => return Some(problem),
        };
        if event.comm.is_empty() {
            let known = self.latest.get(&event.pid).copied();
            let known = known.or_else(|| self.first.borrow().get(&event.pid).copied());
            event.comm = known.unwrap_or_default();
        } else {
            self.latest.insert(event.pid, event.comm);
        }
        Some(Ok(event))
    }
}

impl Iterator for OneCpu<'_> {
    type Item = Result<Event, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.events.is_empty() && self.problems.is_empty() && self.read_page() {
            self.take_page();
        }
        let problem = self.problems.pop_front().map(Err);
        problem.or_else(|| self.events.pop_front().map(Ok))
    }
}

impl OneCpu<'_> {
    /// Reads one more page, or what is left if that is less; false if there is none.
    fn read_page(&mut self) -> bool {
        self.page_offset += self.page.len() as u64;
        self.page.clear();
        let mut rest = (&mut self.from.pages).take(self.format.page_size as u64);
        if let Err(error) = rest.read_to_end(&mut self.page) {
            let problem = self.problem(0, error.to_string());
            self.problems.push_back(problem);
            return false;
        }
        !self.page.is_empty()
    }

    /// Takes the events out of the page that was read.
    fn take_page(&mut self) {
        let page = std::mem::take(&mut self.page);
        let taken: Vec<Result<(), Problem>> = match ring::entries(&page, &self.format) {
            Err(bad) => vec![Err(self.problem(bad.offset, bad.what))],
            Ok(entries) => entries.map(|entry| self.take_entry(entry)).collect(),
        };
        self.problems.extend(taken.into_iter().filter_map(Result::err));
        self.page = page;
        let mut names = self.first_names.borrow_mut();
        for event in self.events.iter().filter(|event| !event.comm.is_empty()) {
            names.entry(event.pid).or_insert(event.comm);
        }
    }

    fn take_entry(&mut self, entry: Result<Entry, BadPage>) -> Result<(), Problem> {
        let cpu = self.from.cpu;
        let (time_ns, offset, event) = match entry {
            Err(bad) => return Err(self.problem(bad.offset, bad.what)),
            Ok(Entry::Lost { time_ns, count }) => {
                let what = EventKind::Lost { count, since_ns: Some(self.latest_ns) };
                (time_ns, 0, Event { time_ns, cpu, pid: 0, comm: Comm::default(), what })
            }
            Ok(Entry::Record { time_ns, offset, data }) => {
                match self.decoder.decode(time_ns, cpu, data) {
                    Ok(None) => return Ok(()),
                    Ok(Some(event)) => (time_ns, offset, event),
                    Err(what) => return Err(self.problem(offset, what)),
                }
            }
        };
        if time_ns < self.latest_ns {
            let back_ns = self.latest_ns - time_ns;
            return Err(self.problem(offset, format!("{back_ns} ns before the record before it")));
        }
        self.latest_ns = time_ns;
        self.events.push_back(event);
        Ok(())
    }

    fn problem(&self, offset: usize, what: String) -> Problem {
        let place = Position::Byte(self.page_offset + offset as u64);
        Problem { file: self.from.file.clone(), place, what }
    }
}
