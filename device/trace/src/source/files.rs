// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads recorded traces from files, merged by time into one trace. There may be one file per
//! period, CPU or device.
//!
//! `steady trace FILE…` calls it.

use std::fs::File;
use std::io::{self, BufReader, Cursor, ErrorKind, Read};
use std::path::Path;

use super::detect::{self, Format};
use super::merge::Merge;
use super::text::Text;
use super::trace_dat::Report;
use super::{Position, Problem};

const NOT_KEPT: &str =
    "is a folder, but not one of `steady trace --keep` (give files, or such a folder)";
const BUFFER_BYTES: usize = 1 << 16;

/// The events of the files, with problems between them.
pub type Files = Merge<Text<'static>>;

/// Opens all files; `-` is standard input. Without a format in `said`, it detects the format of
/// each. The problem names the file that is not a trace, or cannot be read. A pipe is fine, unless
/// it contains a `trace.dat`.
pub fn open<P: AsRef<Path>>(paths: &[P], said: Option<Format>) -> Result<Files, Problem> {
    let texts = paths.iter().map(|path| open_one(path.as_ref(), said));
    Ok(Files::new(texts.collect::<Result<_, _>>()?))
}

fn open_one(path: &Path, said: Option<Format>) -> Result<Text<'static>, Problem> {
    let path = if path == Path::new("-") { Path::new("/dev/stdin") } else { path };
    let file = path.display().to_string();
    let problem = |what: String| Problem { file: file.clone(), place: Position::Whole, what };
    let opened = File::open(path).map_err(|error| problem(format!("cannot be opened: {error}")))?;
    let mut head = Vec::new();
    let unreadable = |error: io::Error| match error.kind() {
        ErrorKind::IsADirectory => problem(NOT_KEPT.into()),
        _ => problem(format!("cannot be read: {error}")),
    };
    let mut begins = (&opened).take(detect::HEAD_BYTES as u64);
    begins.read_to_end(&mut head).map_err(unreadable)?;
    let found = said.map_or_else(|| detect::format(&head), Ok);
    let format = found.map_err(|why| problem(why.to_owned()))?;
    if format == Format::TraceDat {
        let report = Report::of(path).map_err(|error| problem(error.to_string()))?;
        let report = BufReader::with_capacity(BUFFER_BYTES, report);
        return Ok(Text::new(format, report, &format!("{file} (trace-cmd report)")));
    }
    let whole = BufReader::with_capacity(BUFFER_BYTES, Cursor::new(head).chain(opened));
    Ok(Text::new(format, whole, &file))
}

impl Files {
    /// The number of events so far that are read but not needed.
    pub fn skipped(&self) -> u64 {
        self.sources.iter().map(|text| text.skipped).sum()
    }
}
