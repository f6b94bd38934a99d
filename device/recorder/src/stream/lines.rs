// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses lines: one record per line, without its newline. [`super::framing`] calls it.

use super::item::{Place, Step, StreamItem};

/// The parser of lines.
#[derive(Debug)]
pub struct Lines {
    line_bytes_max: usize,
    /// The number of bytes that were searched already.
    searched: usize,
    /// Whether a line was too long, and its rest is being skipped.
    skipping: bool,
}

impl Lines {
    /// Lines of up to `line_bytes_max`. A longer line becomes a record of one byte more, which is
    /// counted as lost; the rest is skipped.
    pub fn new(line_bytes_max: usize) -> Lines {
        Lines { line_bytes_max, searched: 0, skipping: false }
    }

    /// See [`super::framing::Framing::next`].
    pub fn next(&mut self, data: &[u8], ended: bool) -> Option<Step> {
        let newline = data[self.searched..].iter().position(|&byte| byte == b'\n');
        let newline = newline.map(|position| self.searched + position);
        self.searched = 0;
        if self.skipping {
            self.skipping = newline.is_none();
            let bytes = newline.map_or(data.len(), |newline| newline + 1);
            return (bytes > 0).then_some(Step { bytes, what: StreamItem::Other });
        }
        let length = newline.unwrap_or(data.len());
        if length > self.line_bytes_max {
            self.skipping = true;
            return Some(record(self.line_bytes_max + 1, self.line_bytes_max + 1));
        }
        match newline {
            Some(newline) => Some(record(newline, newline + 1)),
            None if ended && length > 0 => Some(record(length, length)),
            None => {
                self.searched = length;
                None
            }
        }
    }
}

fn record(length: usize, bytes: usize) -> Step {
    Step {
        bytes,
        what: StreamItem::Record { id: 0, times_ns: None, payload: 0..length, place: Place::Input },
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// All records of a text that comes in pieces of these lengths.
    fn records(text: &[u8], line_bytes_max: usize, pieces: &[usize]) -> Vec<Vec<u8>> {
        let mut lines = Lines::new(line_bytes_max);
        let mut pieces = pieces.iter().cycle();
        let (mut start, mut end, mut records) = (0, 0, Vec::new());
        loop {
            match lines.next(&text[start..end], end == text.len()) {
                Some(step) => {
                    if let StreamItem::Record { payload, .. } = step.what {
                        records.push(text[start..end][payload].to_vec());
                    }
                    start += step.bytes;
                }
                None if end == text.len() => return records,
                None => end = (end + pieces.next().unwrap()).min(text.len()),
            }
        }
    }

    #[test]
    fn a_line_is_a_record_and_the_last_needs_no_newline() {
        assert_eq!(records(b"a\n\nbc\nd", 10, &[1]), [&b"a"[..], b"", b"bc", b"d"]);
        assert!(records(b"", 10, &[1]).is_empty());
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(
            text in prop::collection::vec(prop::sample::select(&b"ab\n"[..]), 0..200),
            pieces in prop::collection::vec(1usize..20, 1..10),
        ) {
            let max = 7;
            let mut expected: Vec<Vec<u8>> = text.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
            if expected.last().is_some_and(Vec::is_empty) {
                // After the last newline there is no line.
                expected.pop();
            }
            for line in &mut expected {
                line.truncate(max + 1);
            }
            prop_assert_eq!(records(&text, max, &pieces), expected);
        }
    }
}
