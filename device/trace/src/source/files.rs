// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that were traced elsewhere, as one trace: parts by time, by CPU or by device are merged by time.
//!
//! Called by `steady trace FILE…`.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;

use super::detect::{self, Format};
use super::merge::Merge;
use super::text::Text;
use super::trace_dat::TraceDat;
use super::{Position, Problem, trace_dat};
use crate::event::Event;

const NOT_KEPT: &str =
    "is a folder, but none that `steady trace --keep` made; give files, or such a folder";

/// The events of some files, with problems between them.
pub struct Files(Merge<Source>);

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
    Ok(Files(Merge::new(sources)))
}

fn or_standard_input(path: &Path) -> &Path {
    if path == Path::new("-") { Path::new("/dev/stdin") } else { path }
}

impl Files {
    /// How many events were read that are not needed, so far.
    pub fn skipped(&self) -> u64 {
        let skipped = |source: &Source| match source {
            Source::Text(source) => source.skipped(),
            Source::TraceDat(source) => source.skipped(),
        };
        self.0.sources.iter().map(skipped).sum()
    }
}

impl Iterator for Files {
    type Item = Result<Event, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

impl Iterator for Source {
    type Item = Result<Event, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Source::Text(source) => source.next(),
            Source::TraceDat(source) => source.next(),
        }
    }
}
