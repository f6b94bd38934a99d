// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pages of all CPUs as one stream of events in the order of their time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::io::Read;

use super::decode::{Decoded, Decoder};
use super::format::PageFormat;
use super::ring::{self, BadPage, Entry};
use super::{Position, Problem};
use crate::event::{Comm, Event};

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
    cpus: Vec<OneCpu<'a>>,
    /// The time of each CPU's next event, and the CPU's place in `cpus`.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    problems: VecDeque<Problem>,
    format: PageFormat,
    decoder: &'a Decoder,
    names: Names,
}

/// Names by thread. Only some events carry one.
struct Names {
    /// The latest that an event carried.
    latest: HashMap<u32, Comm>,
    /// The first one, of a page that has been read but not been given to its end: better than none.
    first: HashMap<u32, Comm>,
}

/// One CPU: the events of its current page that are still to be given.
struct OneCpu<'a> {
    from: CpuPages<'a>,
    page: Vec<u8>,
    /// Where `page` begins in `from`.
    page_offset: u64,
    events: VecDeque<Event>,
    latest_ns: u64,
}

impl<'a> Merged<'a> {
    /// Begins to read; `comms` holds the names that are known from elsewhere.
    pub fn new(
        cpus: Vec<CpuPages<'a>>,
        format: PageFormat,
        decoder: &'a Decoder,
        comms: HashMap<u32, Comm>,
    ) -> Merged<'a> {
        let cpus = cpus.into_iter().map(|from| OneCpu {
            from,
            page: Vec::new(),
            page_offset: 0,
            events: VecDeque::new(),
            latest_ns: 0,
        });
        let mut merged = Merged {
            cpus: cpus.collect(),
            next: BinaryHeap::new(),
            problems: VecDeque::new(),
            format,
            decoder,
            names: Names { latest: comms, first: HashMap::new() },
        };
        (0..merged.cpus.len()).for_each(|place| merged.queue(place));
        merged
    }

    /// When the last event was that was read of one of the buffers, in the order in which they were given.
    pub fn latest_ns(&self, buffer: usize) -> u64 {
        self.cpus[buffer].latest_ns
    }

    /// Makes the next event of one CPU a candidate.
    fn queue(&mut self, place: usize) {
        let cpu = &mut self.cpus[place];
        while cpu.events.is_empty() && cpu.read_page(self.format.page_size, &mut self.problems) {
            cpu.take_page(&self.format, self.decoder, &mut self.problems);
            for event in cpu.events.iter().filter(|event| !event.comm.is_empty()) {
                self.names.first.entry(event.pid).or_insert(event.comm);
            }
        }
        if let Some(event) = cpu.events.front() {
            self.next.push(Reverse((event.time_ns, place)));
        }
    }
}

impl Names {
    /// Takes the name of an event, or gives it one; events come in the order of their time.
    fn complete(&mut self, event: &mut Event) {
        if event.comm.is_empty() {
            let known = self.latest.get(&event.pid).or_else(|| self.first.get(&event.pid));
            event.comm = known.copied().unwrap_or_default();
        } else {
            self.latest.insert(event.pid, event.comm);
        }
    }
}

impl Iterator for Merged<'_> {
    type Item = Result<Event, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(problem) = self.problems.pop_front() {
            return Some(Err(problem));
        }
        let Reverse((_, place)) = self.next.pop()?;
        let mut event = self.cpus[place].events.pop_front()?;
        self.queue(place);
        self.names.complete(&mut event);
        Some(Ok(event))
    }
}

impl OneCpu<'_> {
    /// Reads one more page, or what is left if that is less; false if there is none.
    fn read_page(&mut self, page_size: usize, problems: &mut VecDeque<Problem>) -> bool {
        self.page_offset += self.page.len() as u64;
        self.page.clear();
        let mut rest = (&mut self.from.pages).take(page_size as u64);
        if let Err(error) = rest.read_to_end(&mut self.page) {
            problems.push_back(self.problem(0, error.to_string()));
            return false;
        }
        !self.page.is_empty()
    }

    /// Takes the events out of the page that was read.
    fn take_page(
        &mut self,
        format: &PageFormat,
        decoder: &Decoder,
        problems: &mut VecDeque<Problem>,
    ) {
        let page = std::mem::take(&mut self.page);
        match ring::entries(&page, format) {
            Err(bad) => problems.push_back(self.problem(bad.offset, bad.what)),
            Ok(entries) => {
                for entry in entries {
                    if let Err(problem) = self.take_entry(entry, decoder) {
                        problems.push_back(problem);
                    }
                }
            }
        }
        self.page = page;
    }

    fn take_entry(
        &mut self,
        entry: Result<Entry, BadPage>,
        decoder: &Decoder,
    ) -> Result<(), Problem> {
        let (time_ns, offset, decoded) = match entry {
            Err(bad) => return Err(self.problem(bad.offset, bad.what)),
            Ok(Entry::Lost { time_ns, count }) => {
                (time_ns, 0, Decoded::lost(count, self.latest_ns))
            }
            Ok(Entry::Record { time_ns, offset, data }) => match decoder.decode(data) {
                Ok(None) => return Ok(()),
                Ok(Some(decoded)) => (time_ns, offset, decoded),
                Err(what) => return Err(self.problem(offset, what)),
            },
        };
        if time_ns < self.latest_ns {
            let back_ns = self.latest_ns - time_ns;
            return Err(self.problem(offset, format!("{back_ns} ns before the record before it")));
        }
        self.latest_ns = time_ns;
        let (cpu, comm) = (self.from.cpu, decoded.comm.unwrap_or_default());
        self.events.push_back(Event { time_ns, cpu, pid: decoded.pid, comm, what: decoded.what });
        Ok(())
    }

    fn problem(&self, offset: usize, what: String) -> Problem {
        let place = Position::Byte(self.page_offset + offset as u64);
        Problem { file: self.from.file.clone(), place, what }
    }
}
