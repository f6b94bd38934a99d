// SPDX-License-Identifier: MIT OR Apache-2.0
//! An invalid value in a file, with its line. All parsers of this crate use it.

use toml_edit::{Document, Item, TableLike};

use crate::BoundError;

/// The text of an error, and its place.
#[derive(Debug)]
pub(crate) struct Fault {
    /// Keys, and for arrays indices from 0, separated by `/`: `task/2/jitter_us`.
    place: String,
    /// The value and its range, in words.
    text: String,
}

pub(crate) fn fault<T>(place: impl Into<String>, text: impl Into<String>) -> Result<T, Fault> {
    Err(Fault { place: place.into(), text: text.into() })
}

impl Fault {
    /// Adds the number of the line in this file.
    pub(crate) fn in_file(self, file: &str) -> BoundError {
        match line_of(file, &self.place) {
            Some(line) => BoundError(format!("line {line}: {}", self.text)),
            None => BoundError(self.text),
        }
    }
}

impl From<Fault> for BoundError {
    /// For a set that is not in a file.
    fn from(fault: Fault) -> BoundError {
        BoundError(fault.text)
    }
}

/// The line of the last part of the place that the file has.
fn line_of(file: &str, place: &str) -> Option<usize> {
    let document = Document::parse(file).ok()?;
    let mut start = None;
    let mut inside = Inside::Table(document.as_table());
    for step in place.split('/') {
        let Some((found, next)) = inside.step(step) else { break };
        start = found.or(start);
        inside = next;
    }
    Some(file[..start?].matches('\n').count() + 1)
}

enum Inside<'a> {
    Table(&'a dyn TableLike),
    Item(&'a Item),
    Value(&'a toml_edit::Value),
}

impl<'a> Inside<'a> {
    /// The start of the item, and the item itself.
    fn step(self, step: &str) -> Option<(Option<usize>, Inside<'a>)> {
        let start = |span: Option<std::ops::Range<usize>>| span.map(|span| span.start);
        if let Ok(place) = step.parse::<usize>() {
            return match self {
                Inside::Item(Item::ArrayOfTables(tables)) => {
                    let table = tables.get(place)?;
                    Some((start(table.span()), Inside::Table(table)))
                }
                Inside::Item(item) => {
                    let value = item.as_array()?.get(place)?;
                    Some((start(value.span()), Inside::Value(value)))
                }
                _ => None,
            };
        }
        let table = match self {
            Inside::Table(table) => table,
            Inside::Item(item) => item.as_table_like()?,
            Inside::Value(value) => value.as_inline_table()?,
        };
        let (key, item) = table.get_key_value(step)?;
        Some((start(key.span()), Inside::Item(item)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "a = 1\n\n[read]\nbase_ns = 5\n\n[[task]]\nname = \"x\"\n[[task]]\nkib = 4\n\
                        [more]\nlist = [\n { deep = 1 },\n { deep = 2 },\n]\n";

    #[test]
    fn the_line_is_that_of_the_key_or_of_what_should_have_it() {
        for (place, line) in [
            ("a", Some(1)),
            ("read/base_ns", Some(4)),
            ("read/missing", Some(3)),
            ("task/1/kib", Some(9)),
            ("task/0/kib", Some(6)),
            ("more/list/1/deep", Some(13)),
            ("missing", None),
        ] {
            assert_eq!(line_of(FILE, place), line, "{place}");
        }
    }
}
