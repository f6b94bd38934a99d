// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that were traced elsewhere, as one trace: parts by time, by CPU or by device are merged by time.
//!
//! Called by `steady trace FILE…`.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::blktrace::Blktrace;
use super::detect::{self, Format};
use super::skipped::Skipped;
use super::text::Text;
use super::trace_dat::TraceDat;
use super::{Position, Problem, blktrace, trace_dat};
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
    Blktrace(Blktrace<'static>),
    TraceDat(TraceDat),
}

/// Opens all of them; `-` is standard input. Without `said`, each is looked at; the problem says which file is no trace, or cannot be
/// read. A pipe can be read as well, unless it is a `trace.dat`.
pub fn open<P: AsRef<Path>>(paths: &[P], said: Option<Format>) -> Result<Files, Problem> {
    let mut sources = Vec::new();
    let mut per_cpu = Vec::new();
    let mut problems = VecDeque::new();
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
            Format::Blktrace => per_cpu.push((file, whole)),
            text => sources.extend(detect::text(text, whole, &file).map(Source::Text)),
        }
    }
    problems.extend(files_left_out(paths, per_cpu.iter().map(|(file, _)| Path::new(file))));
    if !per_cpu.is_empty() {
        // One source, so that a thread's name in one file is known in all.
        sources.push(Source::Blktrace(blktrace::read(per_cpu)));
    }
    let events = sources.iter().map(|_| None).collect();
    let mut files = Files { sources, next: BinaryHeap::new(), events, problems };
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
            Source::Blktrace(source) => source.next(),
            Source::TraceDat(source) => source.next(),
        }
    }

    fn skipped(&self) -> &Skipped {
        match self {
            Source::Text(source) => source.skipped(),
            Source::Blktrace(source) => source.skipped(),
            Source::TraceDat(source) => source.skipped(),
        }
    }
}

/// blktrace writes one file per CPU: a problem for each that lies beside those given and was not given.
fn files_left_out<'a, P: AsRef<Path>>(
    given: &[P],
    of_blktrace: impl Iterator<Item = &'a Path>,
) -> Vec<Problem> {
    let given: BTreeSet<&Path> = given.iter().map(AsRef::as_ref).collect();
    let mut left_out = BTreeSet::new();
    for path in of_blktrace {
        let beside = path
            .parent()
            .map(|folder| if folder == Path::new("") { Path::new(".") } else { folder });
        let Some((stem, entries)) =
            recording(path).zip(beside.and_then(|folder| folder.read_dir().ok()))
        else {
            continue;
        };
        let others = entries.flatten().map(|entry| path.with_file_name(entry.file_name()));
        let others = others.filter(|other| recording(other).is_some_and(|other| other == stem));
        left_out.extend(others.filter(|other| !given.contains(other.as_path())));
    }
    let what = "is of the same recording, and was not given: events of its CPU are missing";
    let problem = |path: PathBuf| Problem {
        file: path.display().to_string(),
        place: Position::Whole,
        what: what.into(),
    };
    left_out.into_iter().map(problem).collect()
}

/// `sda` of `sda.blktrace.0`.
fn recording(path: &Path) -> Option<String> {
    let (stem, cpu) = path.file_name()?.to_str()?.rsplit_once(".blktrace.")?;
    cpu.parse::<u32>().is_ok().then(|| stem.to_owned())
}
