// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decodes the pages of all CPUs into one stream of events in time order.
//! [`super::capture::Captured::events`] uses it.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::iter;
use std::ops::Range;
use std::rc::Rc;

use super::decode::Decoder;
use super::merge::Merge;
use super::ring::{self, BadPage, Entry};
use super::{Position, Problem};
use crate::event::{Comm, Event, EventKind};

/// The pages of one CPU, oldest first.
pub struct CpuPages<'a> {
    pub cpu: u32,
    /// The source of the pages, for problems.
    pub file: String,
    /// The pages. Those after an error are ignored.
    pub pages: Box<dyn Iterator<Item = io::Result<Vec<u8>>> + 'a>,
}

/// The events of all CPUs, with problems between them.
pub struct Merged<'a> {
    cpus: Merge<OneCpu<'a>>,
    names: Names,
}

/// The name of each thread in its last event that has one; not all events do. Before that, the
/// first name in a page that has been read.
type Names = Rc<RefCell<HashMap<u32, Comm>>>;

/// One CPU, with the rest of its current page.
struct OneCpu<'a> {
    from: CpuPages<'a>,
    /// The bytes of its current page in the data, from beginning to end.
    page: Range<u64>,
    next: VecDeque<Result<Event, Problem>>,
    latest_ns: u64,
    /// Whether something could not be read since the last event, so that others may be missing.
    is_damaged: bool,
    decoder: &'a Decoder,
    names: Names,
}

impl<'a> Merged<'a> {
    /// Starts to read; `names` are already known.
    pub fn new(
        cpus: Vec<CpuPages<'a>>,
        decoder: &'a Decoder,
        names: HashMap<u32, Comm>,
    ) -> Merged<'a> {
        let names = Names::new(names.into());
        let cpus = cpus.into_iter().map(|from| OneCpu {
            from,
            page: 0..0,
            next: VecDeque::new(),
            latest_ns: 0,
            is_damaged: false,
            decoder,
            names: Rc::clone(&names),
        });
        Merged { cpus: Merge::new(cpus.collect()), names }
    }

    /// The time of the last event of one buffer that was read. Buffers count in the order in which
    /// they were given.
    pub fn latest_ns(&self, buffer: usize) -> u64 {
        self.cpus.sources[buffer].latest_ns
    }
}

impl Iterator for Merged<'_> {
    type Item = Result<Event, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut item = self.cpus.next()?;
        if let Ok(event) = &mut item {
            let mut names = self.names.borrow_mut();
            if event.comm.is_empty() {
                event.comm = names.get(&event.pid).copied().unwrap_or_default();
            } else {
                names.insert(event.pid, event.comm);
            }
        }
        Some(item)
    }
}

impl Iterator for OneCpu<'_> {
    type Item = Result<Event, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.next.is_empty() {
            self.page.start = self.page.end;
            match self.from.pages.next() {
                Some(Ok(page)) => self.take_page(&page),
                Some(Err(error)) => {
                    self.from.pages = Box::new(iter::empty());
                    self.put(Err(BadPage { offset: 0, what: error.to_string() }));
                }
                None if self.is_damaged => self.put_loss(self.latest_ns, 0),
                None => return None,
            }
        }
        self.next.pop_front()
    }
}

impl OneCpu<'_> {
    fn take_page(&mut self, page: &[u8]) {
        self.page.end += page.len() as u64;
        match ring::entries(page, &self.decoder.page) {
            Err(bad) => self.put(Err(bad)),
            Ok(entries) => entries.for_each(|entry| match entry {
                Ok(Entry::Lost { time_ns, count }) => self.put_loss(time_ns, count),
                Ok(Entry::Record { time_ns, offset, data }) => {
                    let event = self.decoder.decode(time_ns, self.from.cpu, data);
                    let event = event.map_err(|what| BadPage { offset, what }).transpose();
                    if let Some(event) = event {
                        self.put(event.and_then(|event| self.in_order(event, offset)));
                    }
                }
                Err(bad) => self.put(Err(bad)),
            }),
        }
    }

    /// An event must not be earlier than the one before it.
    fn in_order(&self, event: Event, offset: usize) -> Result<Event, BadPage> {
        let back_ns = self.latest_ns.saturating_sub(event.time_ns);
        let bad = || BadPage { offset, what: format!("{back_ns} ns before the record before it") };
        if back_ns == 0 { Ok(event) } else { Err(bad()) }
    }

    fn put_loss(&mut self, time_ns: u64, count: u64) {
        self.is_damaged = false;
        let what = EventKind::Lost { count, since_ns: Some(self.latest_ns) };
        let (cpu, comm) = (self.from.cpu, Comm::default());
        self.put(self.in_order(Event { time_ns, cpu, pid: 0, comm, what }, 0));
    }

    /// Adds the next event, or the reason why it cannot be read.
    fn put(&mut self, event: Result<Event, BadPage>) {
        match event {
            Ok(event) => {
                if self.is_damaged {
                    self.put_loss(event.time_ns, 0);
                }
                self.latest_ns = event.time_ns;
                if !event.comm.is_empty() {
                    self.names.borrow_mut().entry(event.pid).or_insert(event.comm);
                }
                self.next.push_back(Ok(event));
            }
            Err(BadPage { offset, what }) => {
                self.is_damaged = true;
                let place = Position::Byte(self.page.start + offset as u64);
                let file = self.from.file.clone();
                self.next.push_back(Err(Problem { file, place, what }));
            }
        }
    }
}
