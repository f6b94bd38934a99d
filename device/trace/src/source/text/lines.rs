// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines of a file that may be anything: of bounded length, with their number, in any line ending.

use std::io::{self, BufRead, Read};

/// No line of a trace is longer.
pub const LINE_LENGTH_MAX: usize = 64 * 1024;

/// The lines of a file, one after the other.
pub struct Lines<R> {
    reader: R,
    line: Vec<u8>,
    number: u64,
}

/// One line, without its end.
pub enum Line<'a> {
    /// It can be looked at.
    Text(&'a [u8]),
    /// It cannot be of a trace: this is why.
    Bad(&'static str),
    /// The file cannot be read further.
    Failed(io::Error),
    /// The file has ended.
    End,
}

impl<R: BufRead> Lines<R> {
    /// From the first line on.
    pub fn new(reader: R) -> Lines<R> {
        Lines { reader, line: Vec::new(), number: 0 }
    }

    /// The number of the last line read; the first is 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn next(&mut self) -> Line<'_> {
        self.line.clear();
        let mut limited = self.reader.by_ref().take(LINE_LENGTH_MAX as u64);
        match limited.read_until(b'\n', &mut self.line) {
            Ok(0) => return Line::End,
            Ok(_) => self.number += 1,
            Err(error) => return Line::Failed(error),
        }
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        } else if self.line.len() == LINE_LENGTH_MAX {
            return match self.reader.skip_until(b'\n') {
                Ok(_) => Line::Bad("longer than 64 KiB: no line of a trace is"),
                Err(error) => Line::Failed(error),
            };
        } else {
            return Line::Bad("the last line has no end: it may be cut");
        }
        self.checked()
    }

    /// The line without a carriage return and a byte order mark, unless it is binary.
    fn checked(&self) -> Line<'_> {
        let mut text = self.line.as_slice();
        if self.number == 1 {
            text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        }
        text = text.strip_suffix(b"\r").unwrap_or(text);
        if text.contains(&0) {
            return Line::Bad("has a NUL byte: not text");
        }
        Line::Text(text)
    }
}
