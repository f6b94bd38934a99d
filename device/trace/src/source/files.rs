// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that were traced elsewhere, as one trace: parts by time, by CPU or by device are merged by time.
//!
//! Called by `steady trace FILE…`.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;

use super::detect::{self, Format};
use super::skipped::Skipped;
use super::text::Text;
use super::trace_dat::TraceDat;
use super::{Position, Problem, trace_dat};
use crate::event::Event;

const NOT_KEPT: &str =
    "is a folder, but none that `steady trace --keep` made; give files, or such a folder";

/// The events of some files, with problems between them.
pub struct Files {
    sources: Vec<Source>,
    /// The next event of each source that has one, by time and place in `sources`.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    events: Vec<Option<Event>>,
    problems: VecDeque<Problem>,
}

enum Source {
    Text(Text<'static>),
    TraceDat(TraceDat),
}

/// Opens all of them; `-` is standard input. Without `said`, each is looked at; the problem says which file is no trace, or cannot be
/// read. A pipe can be read as well, unless it is a `trace.dat`.
pub fn open<P: AsRef<Path>>(paths: &[P], said: Option<Format>) -> Result<Files, Problem> {
    let mut sources = Vec::new();
    for path in paths.iter().map(AsRef::as_ref).map(or_standard_input) {
        let file = path.display().to_string();
        let problem = |what: String| Problem { file: file.clone(), place: Position::Whole, what };
        let mut opened =
            File::open(path).map_err(|error| problem(format!("cannot be opened: {error}")))?;
        let mut head = Vec::new();
        let read = (&mut opened).take(detect::HEAD_BYTES as u64).read_to_end(&mut head);
        read.map_err(|error| match error.kind() {
            ErrorKind::IsADirectory => problem(NOT_KEPT.into()),
            _ => problem(format!("cannot be read: {error}")),
        })?;
        let found = said.map_or_else(|| detect::format(&head), Ok);
        let format = found.map_err(|why| problem(why.to_owned()))?;
        let whole = BufReader::with_capacity(1 << 16, std::io::Cursor::new(head).chain(opened));
        match format {
            Format::TraceDat => sources.push(Source::TraceDat(trace_dat::open(path)?)),
            text => sources.extend(detect::text(text, whole, &file).map(Source::Text)),
        }
    }
    let events = sources.iter().map(|_| None).collect();
    let mut files = Files { sources, next: BinaryHeap::new(), events, problems: VecDeque::new() };
    (0..files.sources.len()).for_each(|place| files.queue(place));
    Ok(files)
}

fn or_standard_input(path: &Path) -> &Path {
    if path == Path::new("-") { Path::new("/dev/stdin") } else { path }
}

impl Files {
    /// What was read and is not needed, so far.
    pub fn skipped(&self) -> Skipped {
        let mut all = Skipped::default();
        self.sources.iter().for_each(|source| all.add(source.skipped()));
        all
    }

    /// Makes the next event of one source a candidate. Problems before it wait in `problems`; a file of
    /// problems only must not fill the memory, so that one is given on at a time.
    fn queue(&mut self, place: usize) {
        match self.sources[place].next() {
            Some(Ok(event)) => {
                self.next.push(Reverse((event.time_ns, place)));
                self.events[place] = Some(event);
            }
            Some(Err(problem)) => {
                self.problems.push_back(problem);
                self.next.push(Reverse((0, place)));
            }
            None => {}
        }
    }
}

impl Iterator for Files {
    type Item = Result<Event, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(problem) = self.problems.pop_front() {
                return Some(Err(problem));
            }
            let Reverse((_, place)) = self.next.pop()?;
            let event = self.events[place].take();
            self.queue(place);
            if let Some(event) = event {
                return Some(Ok(event));
            }
        }
    }
}

impl Source {
    fn next(&mut self) -> Option<Result<Event, Problem>> {
        match self {
            Source::Text(source) => source.next(),
            Source::TraceDat(source) => source.next(),
        }
    }

    fn skipped(&self) -> &Skipped {
        match self {
            Source::Text(source) => source.skipped(),
            Source::TraceDat(source) => source.skipped(),
        }
    }
}
