// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sources that are text: one event on a line.
//!
//! [`Text`] does what they have in common: it counts lines, keeps events in the order of their time, and makes
//! a [`Problem`] of every line that is not understood as a whole. What a line looks like is a `Grammar`.

mod body;
mod lines;
mod order;
mod pattern;
pub(super) mod scan;
pub(super) mod syscall;

use std::io::BufRead;

use lines::{Line, Lines};
use order::Order;
use scan::Scan;

use super::{Position, Problem};
use crate::event::{Comm, Event, EventKind, UNKNOWN_CPU};
use crate::sched::{Context, Waking};

/// More than a name and a head have.
const BRACKETS_MAX: usize = 16;

/// How one format writes its lines.
pub(super) trait Grammar {
    /// What `line` says.
    fn read(&mut self, line: &[u8]) -> Reading;
}

/// What a line says.
pub(super) enum Reading {
    /// Nothing: a heading or an empty line.
    Nothing,
    Event(Event),
    /// An event that is not needed.
    Skipped {
        /// Its time and CPU, if it has them.
        at: Option<(u64, u32)>,
    },
    /// Before the next event, events were lost.
    Lost {
        /// On which CPU; if the line does not say, that of the next event, or none that is known at the end.
        cpu: Option<u32>,
        /// How many; 0 if it is not known.
        count: u64,
    },
    /// It cannot be understood: this is why.
    Problem(String),
    /// Neither this line nor what comes behind it can be used: this is why.
    Stop(String),
}

/// Each `[CPU] ` in a line, with what stands before and behind it: a thread's name can hold some, too.
pub(super) fn cpus_in_brackets(line: &[u8]) -> impl Iterator<Item = (&[u8], u32, Scan<'_>)> {
    let brackets = line.iter().enumerate().filter(|(_, byte)| **byte == b'[');
    brackets.take(BRACKETS_MAX).filter_map(|(place, _)| {
        let mut scan = Scan::new(&line[place + 1..]);
        let cpu = scan.decimal("").ok()?;
        scan.passes("] ").then_some((&line[..place], cpu, scan))
    })
}

/// The head of an event's line: when, where and who.
#[derive(Clone, Copy)]
pub(super) struct Head {
    /// When, in ns.
    pub time_ns: u64,
    pub cpu: u32,
    pub pid: u32,
    /// Its name, if known.
    pub comm: Comm,
    /// Whether it was itself, if the line says so.
    pub context: Option<Context>,
}

impl Head {
    /// What the line of event `name` with the values `text` says; problems call it `kind`.
    pub fn reading(&self, kind: &[u8], name: &[u8], text: &[u8]) -> Reading {
        match body::parse(name, text) {
            None => self.skipped(),
            Some(Ok(body)) => Reading::Event(self.event(body)),
            Some(Err(wrong)) => Reading::Problem(format!("{}: {wrong}", kind.escape_ascii())),
        }
    }

    /// An event with this head that is not needed.
    pub fn skipped(&self) -> Reading {
        Reading::Skipped { at: Some((self.time_ns, self.cpu)) }
    }

    /// Before this moment, `count` events of this CPU were lost.
    pub fn lost(&self, count: u64) -> Reading {
        let what = EventKind::Lost { count, since_ns: None };
        Reading::Event(self.event(what.into()))
    }

    /// The event with this head.
    pub fn event(&self, body: body::Body) -> Event {
        let comm = if self.comm.is_empty() { body.comm } else { self.comm };
        let context = self.context;
        let what = match body.what {
            EventKind::Waking(waking) => EventKind::Waking(Waking { context, ..waking }),
            what => what,
        };
        Event { time_ns: self.time_ns, cpu: self.cpu, pid: self.pid, comm, what }
    }
}

/// Events from a text.
pub struct Text<'a> {
    lines: Lines<Box<dyn BufRead + 'a>>,
    grammar: Box<dyn Grammar + 'a>,
    file: String,
    order: Order,
    lost: Vec<(Option<u32>, u64)>,
    skipped: u64,
    ended: bool,
}

impl<'a> Text<'a> {
    /// The events that `grammar` finds in `reader`, which is called `file` in problems.
    pub(super) fn new(
        reader: impl BufRead + 'a,
        file: &str,
        grammar: impl Grammar + 'a,
    ) -> Text<'a> {
        Text {
            lines: Lines::new(Box::new(reader)),
            grammar: Box::new(grammar),
            file: file.to_owned(),
            order: Order::default(),
            lost: Vec::new(),
            skipped: 0,
            ended: false,
        }
    }

    /// How many events were read that are not needed, so far.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// How many lines were read, so far.
    pub(super) fn lines_read(&self) -> u64 {
        self.lines.number()
    }

    /// Reads one line; a problem if there is one.
    fn read_line(&mut self) -> Result<(), String> {
        let line = match self.lines.next() {
            Line::Text(line) => line,
            Line::Bad(why) => return Err(why.to_owned()),
            Line::Failed(error) => {
                self.ended = true;
                return Err(format!("cannot be read further: {error}"));
            }
            Line::End => {
                self.ended = true;
                return Ok(());
            }
        };
        match self.grammar.read(line) {
            Reading::Nothing => {}
            Reading::Event(event) => {
                place_losses(&mut self.lost, &mut self.order, (event.time_ns, event.cpu));
                return self.order.push(event);
            }
            Reading::Skipped { at } => {
                self.skipped += 1;
                if let Some(at) = at {
                    place_losses(&mut self.lost, &mut self.order, at);
                }
            }
            Reading::Lost { cpu, count } => self.lost.push((cpu, count)),
            Reading::Problem(what) => return Err(what),
            Reading::Stop(what) => {
                self.ended = true;
                return Err(what);
            }
        }
        Ok(())
    }
}

/// Losses are printed without a time, before the first event behind them.
fn place_losses(
    lost: &mut Vec<(Option<u32>, u64)>,
    order: &mut Order,
    (time_ns, here): (u64, u32),
) {
    for (cpu, count) in lost.drain(..) {
        let time_ns = time_ns.max(order.released_ns());
        let cpu = cpu.unwrap_or(here);
        let what = EventKind::Lost { count, since_ns: None };
        order.push_in_order(Event { time_ns, cpu, pid: 0, comm: Comm::default(), what });
    }
}

impl Iterator for Text<'_> {
    type Item = Result<Event, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(event) = self.order.pop(self.ended) {
                return Some(Ok(event));
            }
            if self.ended {
                return None;
            }
            if let Err(what) = self.read_line() {
                let place = match self.lines.number() {
                    0 => Position::Whole,
                    line => Position::Line(line),
                };
                return Some(Err(Problem { file: self.file.clone(), place, what }));
            }
            if self.ended {
                let end = (self.order.newest_ns(), UNKNOWN_CPU);
                place_losses(&mut self.lost, &mut self.order, end);
            }
        }
    }
}
