// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the values of an event's line by a pattern that says how the kernel prints it.
//!
//! A pattern is text that must stand there, with fields between, each as `{name:kind}`; without a name it is read and
//! dropped. `{*}` is anything. All of the line must fit.

use std::sync::{LazyLock, OnceLock};

use regex::bytes::{Captures, Regex, RegexBuilder};

use super::found;

pub struct Pattern {
    text: String,
    whole: OnceLock<Regex>,
    /// For a line that does not fit: the pattern without its last piece, without its last two, and so on, each with what
    /// is expected behind it.
    beginnings: OnceLock<Vec<(Regex, String)>>,
}

/// By the letter: what a field is printed as, and what to call it where something else stands.
fn kind(letter: &str) -> (&'static str, Option<&'static str>) {
    match letter {
        "d" => (r"\d+", None),
        "s" => (r"-?\d+", None),
        // With or without `0x`.
        "x" => (r"(?:0x)?[[:xdigit:]]+|\(nil\)|\(null\)", None),
        "D" => (r"\d+[,:]\d+", Some("a device, as major and minor number")),
        "r" => ("[A-Z]+", Some("an operation in capital letters")),
        // perf cannot name the class and prints its number. May be absent, with the space behind it.
        "p" => (
            r"(?:(?:none|rt|be|idle|invalid|0x[0-7]),\d+,[0-7] )?",
            Some("a priority class, a hint and a level"),
        ),
        "w" => ("[^ ]+", None),
        // Arguments that are not in parentheses.
        "a" => (r"(?:[^(].*)?", None),
        // A name may hold anything, also what stands behind it: the longest with which the line fits.
        "n" => (".*", None),
        _ => (".*?", None),
    }
}

/// Compiled when it is first used.
pub type LazyRegex = LazyLock<Regex>;

/// Of any bytes, without Unicode.
#[allow(clippy::expect_used, reason = "of constants, and all are compiled in a test")]
pub fn regex(pattern: &str) -> Regex {
    let mut builder = RegexBuilder::new(&format!(r"\A{pattern}"));
    builder.unicode(false).dot_matches_new_line(true).build().expect("a regular expression")
}

impl Pattern {
    pub fn new(text: impl Into<String>) -> Pattern {
        Pattern { text: text.into(), whole: OnceLock::new(), beginnings: OnceLock::new() }
    }

    /// The fields of a line that fits, by their names.
    pub fn read<'a>(&self, line: &'a [u8]) -> Option<Captures<'a>> {
        let all = || self.pieces().into_iter().map(|(piece, _)| piece).collect::<String>();
        self.whole.get_or_init(|| regex(&all())).captures(line)
    }

    /// How many pieces of the pattern fit another line, and what does not.
    pub fn wrong(&self, line: &[u8]) -> (usize, String) {
        let beginnings = self.beginnings.get_or_init(|| {
            let pieces = self.pieces();
            let before = |end: usize| pieces[..end].iter().map(|(piece, _)| piece.as_str());
            let beginning = |end| (regex(&before(end).collect::<String>()), pieces[end].1.clone());
            (0..pieces.len()).rev().map(beginning).collect()
        });
        let longest = |(less, (regex, expected)): (usize, &(Regex, String))| {
            let end = regex.find(line)?.end();
            let what = format!("expected {expected} {}", found(&line[end..]));
            Some((beginnings.len() - less, what))
        };
        beginnings.iter().enumerate().find_map(longest).unwrap_or_default()
    }

    /// Text and fields as regular expressions, each with what to call it, and the end.
    fn pieces(&self) -> Vec<(String, String)> {
        let mut pieces = Vec::new();
        for part in self.text.split_inclusive('}') {
            let (text, field) = part.split_once('{').unwrap_or((part, ""));
            if !text.is_empty() {
                pieces.push((regex::escape(text), format!("`{text}`")));
            }
            let field = field.trim_end_matches('}');
            let (name, letter) = field.split_once(':').unwrap_or(("", field));
            let (printed, called) = kind(letter);
            let called = called.unwrap_or(if name.is_empty() { "a value" } else { name });
            match name {
                _ if field.is_empty() => {}
                "" => pieces.push((format!("(?:{printed})"), called.to_owned())),
                _ => pieces.push((format!("(?<{name}>{printed})"), called.to_owned())),
            }
        }
        pieces.push((r" *\z".to_owned(), "the end of the line".to_owned()));
        pieces
    }
}
