// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses the values of an event's line with a pattern of the kernel's output. `table` has the
//! patterns.
//!
//! A pattern is literal text with fields between, each as `{name:kind}`. A field without a name is
//! read and dropped, and `{*}` matches anything. The whole line must match. Regular expressions
//! took most of the time that a long trace needs.

use super::scan::{NAME_BYTES_MAX, Scan, found};

/// The values of a line, by the number of the field.
pub type Values<'a> = [Option<&'a [u8]>; 8];

#[derive(Debug)]
enum Kind {
    Text(String),
    Digits,
    Signed,
    /// With or without `0x`.
    Hex,
    /// Major and minor number.
    Dev,
    /// Operation and flags.
    Capitals,
    /// An I/O priority. perf prints the class as a number, and some kernels print no hint. The
    /// field and the space after it may be absent.
    Priority,
    Word,
    /// Arguments without parentheses.
    Arguments,
    /// A thread's name, which may contain any text, also the text that follows it. The longest
    /// match counts.
    Name,
    /// Any text; the shortest match counts.
    Any,
}

#[derive(Debug)]
struct Piece {
    kind: Kind,
    /// The field's number.
    slot: Option<usize>,
    /// The field's name in errors.
    called: String,
}

#[derive(Debug)]
pub struct Pattern(Vec<Piece>);

/// The result of matching the rest of a line with the rest of a pattern.
#[derive(PartialEq)]
enum Fit {
    Whole,
    Not,
    /// No match, from no later place either.
    Never,
}

/// A line that is being matched with a pattern.
struct Reading<'p, 'a> {
    pieces: &'p [Piece],
    line: &'a [u8],
    values: Values<'a>,
    /// The number of pieces that matched in the best attempt, and the place where the next one was
    /// expected.
    furthest: (usize, usize),
}

impl Pattern {
    /// Compiles a pattern. `names` are the fields' names, by number.
    pub fn new(text: &str, names: &[&str]) -> Pattern {
        let mut pieces = Vec::new();
        for part in text.split_inclusive('}') {
            let (text, field) = part.split_once('{').unwrap_or((part, ""));
            if !text.is_empty() {
                let (kind, called) = (Kind::Text(text.to_owned()), format!("`{text}`"));
                pieces.push(Piece { kind, slot: None, called });
            }
            let field = field.trim_end_matches('}');
            if !field.is_empty() {
                let (name, letter) = field.split_once(':').unwrap_or(("", field));
                let slot = names.iter().position(|known| !name.is_empty() && *known == name);
                let (kind, called) = kind(letter);
                let named = if name.is_empty() { "a value" } else { name };
                pieces.push(Piece { kind, slot, called: called.unwrap_or(named).to_owned() });
            }
        }
        Pattern(pieces)
    }

    /// The values of a matching line. Otherwise the number of pieces that match, and the text
    /// expected after them.
    pub fn read<'a>(&self, line: &'a [u8]) -> Result<Values<'a>, (usize, String)> {
        let mut reading =
            Reading { pieces: &self.0, line, values: Values::default(), furthest: (0, 0) };
        if reading.fit(0, 0) == Fit::Whole {
            return Ok(reading.values);
        }
        let (pieces, at) = reading.furthest;
        let expected = self.0.get(pieces).map_or("the end of the line", |piece| &piece.called);
        Err((pieces, format!("expected {expected} {}", found(&line[at..]))))
    }
}

/// The kind for a letter, and its name in errors if the field's own name does not serve.
fn kind(letter: &str) -> (Kind, Option<&'static str>) {
    match letter {
        "d" => (Kind::Digits, None),
        "s" => (Kind::Signed, None),
        "x" => (Kind::Hex, None),
        "D" => (Kind::Dev, Some("a device, as major and minor number")),
        "r" => (Kind::Capitals, Some("an operation in capital letters")),
        "p" => (Kind::Priority, Some("a priority class, a hint and a level")),
        "w" => (Kind::Word, None),
        "a" => (Kind::Arguments, None),
        "n" => (Kind::Name, None),
        _ => (Kind::Any, None),
    }
}

impl Kind {
    /// The length of a piece at the start of `text`, for kinds whose end does not depend on the
    /// text after it.
    fn length(&self, text: &[u8]) -> Option<usize> {
        let digits =
            |from: usize| text[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let some = |count: usize| (count > 0).then_some(count);
        match self {
            Kind::Text(expected) => text.starts_with(expected.as_bytes()).then_some(expected.len()),
            Kind::Digits => some(digits(0)),
            Kind::Signed => {
                let sign = usize::from(text.first() == Some(&b'-'));
                Some(sign + some(digits(sign))?)
            }
            Kind::Hex => hex_length(text),
            Kind::Dev => {
                let major = some(digits(0))?;
                matches!(text.get(major), Some(b',' | b':')).then_some(())?;
                Some(major + 1 + some(digits(major + 1))?)
            }
            Kind::Capitals => {
                some(text.iter().take_while(|byte| byte.is_ascii_uppercase()).count())
            }
            Kind::Priority => Some(priority_length(text).unwrap_or(0)),
            Kind::Word => some(text.iter().take_while(|byte| **byte != b' ').count()),
            Kind::Arguments => Some(if text.first() == Some(&b'(') { 0 } else { text.len() }),
            Kind::Name | Kind::Any => None,
        }
    }
}

fn hex_length(text: &[u8]) -> Option<usize> {
    for word in [&b"(nil)"[..], b"(null)"] {
        if text.starts_with(word) {
            return Some(word.len());
        }
    }
    let prefix = if text.starts_with(b"0x") { 2 } else { 0 };
    let digits = text[prefix..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    // A lone 0 before other text that begins with x.
    if digits == 0 { (prefix == 2).then_some(1) } else { Some(prefix + digits) }
}

/// The length of a priority such as `be,0,4 `, `0x2,0,4 ` or `rt,4 `.
fn priority_length(text: &[u8]) -> Option<usize> {
    let mut scan = Scan(text);
    let class = scan.while_is(|byte| byte.is_ascii_alphanumeric());
    let is_number = matches!(class, [b'0', b'x', b'0'..=b'7']);
    let is_name = [&b"none"[..], b"rt", b"be", b"idle", b"invalid"].contains(&class);
    (is_name || is_number).then_some(())?;
    scan.text(b",")?;
    let number = scan.while_is(|byte| byte.is_ascii_digit());
    let level = scan.text(b",").map_or(number, |()| scan.while_is(|byte| byte.is_ascii_digit()));
    (!number.is_empty() && matches!(level, [b'0'..=b'7'])).then_some(())?;
    scan.text(b" ")?;
    Some(text.len() - scan.0.len())
}

impl Reading<'_, '_> {
    /// Matches the line from `at` with the pieces from `nth`.
    fn fit(&mut self, nth: usize, at: usize) -> Fit {
        if nth > self.furthest.0 {
            self.furthest = (nth, at);
        }
        let pieces = self.pieces;
        let Some(piece) = pieces.get(nth) else {
            let is_over = self.line[at..].iter().all(|byte| *byte == b' ');
            return if is_over { Fit::Whole } else { Fit::Not };
        };
        let end = self.line.len();
        match &piece.kind {
            Kind::Any if nth + 1 == pieces.len() => self.put(nth, (at, end)),
            Kind::Any => {
                let next = &pieces[nth + 1].kind;
                for to in at..=end {
                    if next.length(&self.line[to..]).is_some() || matches!(next, Kind::Name) {
                        match self.put(nth, (at, to)) {
                            Fit::Not => {}
                            decided => return decided,
                        }
                    } else if to == at && nth + 1 > self.furthest.0 {
                        self.furthest = (nth + 1, at);
                    }
                }
                // Another such piece would be found from an earlier place too.
                Fit::Never
            }
            Kind::Name => {
                let longest = end.min(at + NAME_BYTES_MAX);
                let fits = (at..=longest).rev().any(|to| self.put(nth, (at, to)) == Fit::Whole);
                if fits { Fit::Whole } else { Fit::Not }
            }
            fixed => match fixed.length(&self.line[at..]) {
                Some(length) => self.put(nth, (at, at + length)),
                None => Fit::Not,
            },
        }
    }

    /// Records the value of the piece, and matches the rest.
    fn put(&mut self, nth: usize, (from, to): (usize, usize)) -> Fit {
        if let Some(slot) = self.pieces[nth].slot {
            self.values[slot] = Some(&self.line[from..to]);
        }
        self.fit(nth + 1, to)
    }
}
