// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files of `blktrace`, one per CPU: `sda.blktrace.0` and so on.
//!
//! Each record has a head of 48 bytes, in the byte order of the machine that wrote it, and perhaps more data
//! behind it. The files are merged by time. What blktrace dropped is printed on its console only.

mod record;

use std::collections::{BTreeMap, HashMap};
use std::io::Read;

use record::{ByteOrder, HEAD_LENGTH, Head, Said};

use super::skipped::Skipped;
use super::{Position, Problem};
use crate::event::{Comm, Event, EventKind};

pub use record::{MAGIC, VERSION};

/// Whether a file that begins so is one of blktrace's, in either byte order.
pub fn is_magic(head: &[u8]) -> bool {
    head.first_chunk().is_some_and(|word| ByteOrder::of(*word).is_ok())
}

/// Names of more threads are not kept, so that a damaged file cannot fill the memory.
const NAMES_MAX: usize = 1 << 20;

/// The events of some files.
pub struct Blktrace<'a> {
    files: Vec<OneFile<'a>>,
    /// The next record of each file that has one, by time and place in `files`.
    next: BTreeMap<(u64, usize), Record>,
    problems: Vec<Problem>,
    names: HashMap<u32, Comm>,
    /// The last sequence number of each device and CPU.
    sequences: HashMap<(u32, u32), u32>,
    lost_before: Option<Event>,
    skipped: Skipped,
}

struct OneFile<'a> {
    reader: Box<dyn Read + 'a>,
    name: String,
    byte: u64,
    order: Option<ByteOrder>,
    latest_ns: u64,
}

/// A record and where it begins.
struct Record {
    head: Head,
    data: Vec<u8>,
    byte: u64,
}

/// The events in the files of one or several devices, each with its name.
pub fn read<'a, R: Read + 'a>(files: impl IntoIterator<Item = (String, R)>) -> Blktrace<'a> {
    let files = files.into_iter().map(|(name, reader)| OneFile {
        reader: Box::new(reader),
        name,
        byte: 0,
        order: None,
        latest_ns: 0,
    });
    let mut blktrace = Blktrace {
        files: files.collect(),
        next: BTreeMap::new(),
        problems: Vec::new(),
        names: HashMap::new(),
        sequences: HashMap::new(),
        lost_before: None,
        skipped: Skipped::default(),
    };
    (0..blktrace.files.len()).for_each(|place| blktrace.queue(place));
    blktrace
}

impl Blktrace<'_> {
    /// What was read and is not needed, so far.
    pub fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    /// Makes the next record of one file a candidate.
    fn queue(&mut self, place: usize) {
        let file = &mut self.files[place];
        match file.read_record() {
            Ok(Some(record)) => {
                let time_ns = record.head.time_ns.max(file.latest_ns);
                file.latest_ns = time_ns;
                self.next.insert((time_ns, place), record);
            }
            Ok(None) => {}
            Err(problem) => self.problems.push(problem),
        }
    }

    /// The event of a record, if it is one that is needed.
    fn take(&mut self, record: &Record, place: usize) -> Result<Option<Event>, Problem> {
        let head = &record.head;
        let said = head.said(&record.data).map_err(|what| Problem {
            file: self.files[place].name.clone(),
            place: Position::Byte(record.byte),
            what,
        })?;
        let comm = self.names.get(&head.pid).copied().unwrap_or_default();
        let event =
            |what| Event { time_ns: head.time_ns, cpu: head.cpu, pid: head.pid, comm, what };
        match said {
            Said::Name(comm) => {
                if self.names.len() < NAMES_MAX {
                    self.names.insert(head.pid, comm);
                }
                return Ok(None);
            }
            Said::Skipped(kind) => self.skipped.note(kind),
            Said::Event(_) => {}
        }
        if head.has_sequence() {
            let before = self.sequences.insert((head.dev, head.cpu), head.sequence);
            let missing =
                before.map_or(0, |before| head.sequence.wrapping_sub(before).wrapping_sub(1));
            // One that goes back is a second recording in the same file, not two thousand million losses.
            if missing > 0 && missing < u32::MAX / 2 {
                let lost = Event {
                    pid: 0,
                    comm: Comm::default(),
                    ..event(EventKind::Lost { count: missing.into() })
                };
                let Said::Event(what) = said else { return Ok(Some(lost)) };
                self.lost_before = Some(event(what));
                return Ok(Some(lost));
            }
        }
        match said {
            Said::Event(what) => Ok(Some(event(what))),
            _ => Ok(None),
        }
    }
}

impl Iterator for Blktrace<'_> {
    type Item = Result<Event, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(problem) = self.problems.pop() {
                return Some(Err(problem));
            }
            if let Some(event) = self.lost_before.take() {
                return Some(Ok(event));
            }
            let ((_, place), record) = self.next.pop_first()?;
            self.queue(place);
            match self.take(&record, place) {
                Ok(None) => {}
                Ok(Some(event)) => return Some(Ok(event)),
                Err(problem) => return Some(Err(problem)),
            }
        }
    }
}

impl OneFile<'_> {
    /// The next record; `None` at the end of the file. Behind a problem nothing can be read, for where the next
    /// record begins is not known.
    fn read_record(&mut self) -> Result<Option<Record>, Problem> {
        let byte = self.byte;
        let mut bytes = [0; HEAD_LENGTH];
        let length = self.fill(&mut bytes)?;
        if length == 0 {
            return Ok(None);
        }
        if length < HEAD_LENGTH {
            return Err(self.cut(byte, length, HEAD_LENGTH));
        }
        let order = match self.order {
            Some(order) => order,
            None => ByteOrder::of([bytes[0], bytes[1], bytes[2], bytes[3]])
                .map_err(|what| self.problem(byte, what))?,
        };
        self.order = Some(order);
        let head = Head::read(&bytes, order).map_err(|what| self.problem(byte, what))?;
        if head.time_ns < self.latest_ns {
            let back_ns = self.latest_ns - head.time_ns;
            let what = format!("goes back in time by {back_ns} ns: not a file of one CPU");
            return Err(self.problem(byte, what));
        }
        let mut data = vec![0; head.data_length];
        let length = self.fill(&mut data)?;
        if length < data.len() {
            return Err(self.cut(byte, HEAD_LENGTH + length, HEAD_LENGTH + data.len()));
        }
        Ok(Some(Record { head, data, byte }))
    }

    /// Reads until `bytes` are full or the file ends; how much was read.
    fn fill(&mut self, bytes: &mut [u8]) -> Result<usize, Problem> {
        let mut length = 0;
        while length < bytes.len() {
            match self.reader.read(&mut bytes[length..]) {
                Ok(0) => break,
                Ok(more) => length += more,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(self.problem(self.byte, format!("cannot be read further: {error}")));
                }
            }
        }
        self.byte += length as u64;
        Ok(length)
    }

    fn cut(&self, byte: u64, there: usize, wanted: usize) -> Problem {
        self.problem(byte, format!("the last record is cut: {there} of {wanted} bytes"))
    }

    fn problem(&self, byte: u64, what: String) -> Problem {
        Problem { file: self.name.clone(), place: Position::Byte(byte), what }
    }
}
