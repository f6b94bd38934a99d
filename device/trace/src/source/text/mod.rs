// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sources that are text: one event on a line.
//!
//! [`Text`] does the common part: it counts lines, sorts events by time, and makes a [`Problem`] of
//! every line that it cannot parse completely. `files` opens one per file.

mod ftrace;
pub(super) mod pattern;
mod perf;
mod scan;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{BufRead, Read};

use super::fields::Fields;
use super::table;
use super::{Position, Problem};
use crate::event::{Comm, Context, Event, EventKind, UNKNOWN_CPU, Waking};
use scan::found;

/// No line of a trace is longer.
const LINE_LENGTH_MAX: usize = 64 * 1024;
/// A line with as many NUL bytes is a hole in the file, and not one damaged line.
const HOLE_BYTES: usize = 256;
/// The number of events that are held back until an earlier one can no longer come. Tools that
/// merge the events of running CPUs can print neighbours in the wrong order.
const HELD_BACK: usize = 1024;

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// ftrace's `trace` or `trace_pipe`, or the output of `trace-cmd report`.
    Ftrace,
    /// The output of `perf script`.
    Perf,
    /// The file of `trace-cmd record`.
    TraceDat,
}

enum Line<'a> {
    /// A heading, or an empty line.
    Nothing,
    /// A part of an event that is not needed.
    Skipped,
    Event {
        head: Head,
        /// The event's name without its system.
        name: Cow<'a, [u8]>,
        values: &'a [u8],
    },
    /// Events were lost before the next event.
    Lost {
        /// The CPU. If the line has none, it is the CPU of the next event, or unknown at the end of
        /// the file.
        cpu: Option<u32>,
        /// The number of lost events; 0 if unknown.
        count: u64,
    },
    /// No event can be read, for this reason. Reading stops unless events were read before: then only
    /// this line is damaged.
    Stop(String),
}

/// The head of an event's line: time, CPU and thread.
struct Head {
    time_ns: u64,
    cpu: u32,
    pid: u32,
    comm: Comm,
    context: Option<Context>,
}

impl Head {
    /// The flags are such as `d.h1.`, or empty. The third letter is the interrupt or softirq that
    /// runs on top of the thread.
    fn new(time_ns: u64, cpu: u32, pid: u32, comm: &[u8], flags: &[u8]) -> Head {
        let context = flags.get(2).and_then(|letter| match letter {
            b'.' => Some(Context::Thread),
            b's' => Some(Context::Softirq),
            b'h' | b'H' | b'z' | b'Z' => Some(Context::Interrupt),
            _ => None,
        });
        Head { time_ns, cpu, pid, comm: Comm::new(comm), context }
    }
}

pub struct Text<'a> {
    reader: Box<dyn BufRead + 'a>,
    format: Format,
    file: String,
    line_number: u64,
    /// Events that were read and not yet returned, by time; equal times stay in the order of the
    /// file.
    held: BTreeMap<(u64, u64), Event>,
    pushed: u64,
    released_ns: u64,
    overwritten: bool,
    /// The number of lost events of each CPU that has some. Losses have no time of their own; they
    /// get that of the next event of their CPU. The lines of other CPUs may come between.
    lost: BTreeMap<Option<u32>, u64>,
    /// The time of the last event, needed or not, of each CPU and (`None`) of all. A loss begins
    /// there.
    last_ns: BTreeMap<Option<u32>, u64>,
    /// The number of events so far that are read but not needed.
    pub skipped: u64,
    /// The number of events so far whose values could not be read.
    pub(super) misread: u64,
    ended: bool,
}

impl<'a> Text<'a> {
    /// Reads the events in `reader`. Problems call it `file`.
    pub fn new(format: Format, reader: impl BufRead + 'a, file: &str) -> Text<'a> {
        Text {
            reader: Box::new(reader),
            format,
            file: file.to_owned(),
            line_number: 0,
            held: BTreeMap::new(),
            pushed: 0,
            released_ns: 0,
            overwritten: false,
            lost: BTreeMap::new(),
            last_ns: BTreeMap::new(),
            skipped: 0,
            misread: 0,
            ended: false,
        }
    }

    /// The next line, without its line end and without a byte order mark; `None` at the end of the
    /// file.
    fn read_line<'l>(&mut self, line: &'l mut Vec<u8>) -> Result<Option<&'l [u8]>, String> {
        line.clear();
        let mut limited = (&mut self.reader).take(LINE_LENGTH_MAX as u64);
        let mut read = limited.read_until(b'\n', line);
        let has_end = line.last() == Some(&b'\n');
        let is_long = line.len() == LINE_LENGTH_MAX && !has_end;
        if is_long {
            read = self.reader.skip_until(b'\n').and(read);
        }
        self.ended = !matches!(read, Ok(1..));
        self.line_number += u64::from(!self.ended);
        if read.map_err(|error| format!("cannot be read further: {error}"))? == 0 {
            return if self.line_number == 0 { Err("is empty".into()) } else { Ok(None) };
        }
        let mut text = line.strip_suffix(b"\n").unwrap_or(line);
        if self.line_number == 1 {
            text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        }
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        let nul_bytes = text.iter().filter(|byte| **byte == 0).count();
        if is_long || nul_bytes >= HOLE_BYTES {
            // There may have been any events.
            self.lose(None, 0);
        }
        match text {
            _ if is_long => Err("longer than 64 KiB: no line of a trace is".into()),
            _ if !has_end => Err("the last line has no end: it may be cut".into()),
            _ if nul_bytes > 0 => Err("has a NUL byte: not text".into()),
            _ => Ok(Some(text)),
        }
    }

    /// Parses a line and keeps its event or loss.
    fn take(&mut self, line: &[u8]) -> Result<(), String> {
        let line = match self.format {
            Format::Perf => perf::read(line)?,
            Format::Ftrace | Format::TraceDat => ftrace::read(line, &mut self.overwritten)?,
        };
        match line {
            Line::Nothing => {}
            Line::Skipped => self.skipped += 1,
            Line::Lost { cpu, count } => self.lose(cpu, count),
            Line::Stop(why) => {
                self.ended = self.pushed == 0 && self.skipped == 0;
                return Err(why);
            }
            Line::Event { head, name, values } => {
                let event = event(&head, &name, values);
                self.misread += u64::from(event.is_err());
                let event = event.map_err(|what| format!("{}: {what}", name.escape_ascii()))?;
                if let Some(Event { what: EventKind::Lost { count, .. }, .. }) = event {
                    self.lose(Some(head.cpu), count);
                }
                self.place_losses(head.time_ns, Some(head.cpu));
                self.last_ns.extend([None, Some(head.cpu)].map(|cpu| (cpu, head.time_ns)));
                match event {
                    Some(Event { what: EventKind::Lost { .. }, .. }) => {}
                    Some(event) if event.time_ns < self.released_ns => {
                        let back_ns = self.released_ns - event.time_ns;
                        return Err(format!(
                            "goes back in time by {back_ns} ns, behind more than {HELD_BACK} events: two traces in \
                             one file, or clocks that differ between CPUs (use the trace clock mono)"
                        ));
                    }
                    Some(event) => self.hold(event),
                    None => self.skipped += 1,
                }
            }
        }
        Ok(())
    }

    fn lose(&mut self, cpu: Option<u32>, count: u64) {
        let lost = self.lost.entry(cpu).or_default();
        *lost = lost.saturating_add(count);
    }

    /// Places the losses before an event of the CPU `here`; with `None`, all at the end of the file.
    fn place_losses(&mut self, time_ns: u64, here: Option<u32>) {
        if self.lost.is_empty() {
            return;
        }
        let time_ns = time_ns.max(self.released_ns);
        let due: Vec<_> = match here {
            Some(_) => [None, here].iter().filter_map(|cpu| self.lost.remove_entry(cpu)).collect(),
            None => std::mem::take(&mut self.lost).into_iter().collect(),
        };
        for (cpu, count) in due {
            let since_ns = Some(self.last_ns.get(&cpu).copied().unwrap_or(0));
            let what = EventKind::Lost { count, since_ns };
            let cpu = cpu.or(here).unwrap_or(UNKNOWN_CPU);
            self.hold(Event { time_ns, cpu, pid: 0, comm: Comm::default(), what });
        }
    }

    fn hold(&mut self, event: Event) {
        self.pushed += 1;
        self.held.insert((event.time_ns, self.pushed), event);
    }
}

/// Decodes an event; `None` if the event is not needed. All of its values must be understood,
/// because a part of them may mislead.
fn event(head: &Head, name: &[u8], values: &[u8]) -> Result<Option<Event>, String> {
    let Some(row) = table::by_name(name) else { return Ok(None) };
    let values = values.trim_ascii_start();
    let read = row.text.iter().map(|pattern| pattern.read(values));
    let values_or_why = read.reduce(|one, other| match (one, other) {
        (Err(one), Err(other)) => Err(one.max(other)),
        (one, other) => one.or(other),
    });
    let fields = values_or_why.unwrap_or_else(|| Err((0, String::new()))).map_err(|why| why.1)?;
    let fields = Fields::Text(&fields);
    let what = (row.decode)(&fields);
    let limits = || format!("expected values within their limits {}", found(values));
    let what = match what.ok_or_else(limits)? {
        EventKind::Waking(waking) => EventKind::Waking(Waking { context: head.context, ..waking }),
        what => what,
    };
    let repeated = || fields.comm(row.comm_slot()).unwrap_or_default();
    let comm = if head.comm.is_empty() { repeated() } else { head.comm };
    Ok(Some(Event { time_ns: head.time_ns, cpu: head.cpu, pid: head.pid, comm, what }))
}

impl Iterator for Text<'_> {
    type Item = Result<Event, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.ended || self.held.len() > HELD_BACK {
                let ((time_ns, _), event) = self.held.pop_first()?;
                self.released_ns = time_ns;
                return Some(Ok(event));
            }
            let mut line = Vec::new();
            let text = self.read_line(&mut line);
            let taken = text.and_then(|text| text.map_or(Ok(()), |text| self.take(text)));
            if self.ended {
                let newest = self.held.last_key_value().map_or(self.released_ns, |(key, _)| key.0);
                self.place_losses(newest, None);
            }
            if let Err(what) = taken {
                let place = match self.line_number {
                    0 => Position::Whole,
                    line => Position::Line(line),
                };
                return Some(Err(Problem { file: self.file.clone(), place, what }));
            }
        }
    }
}
