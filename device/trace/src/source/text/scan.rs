// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads numbers and words off the front of a line; what does not fit is an error that shows the place.

use std::fmt;

/// The rest of a line.
#[derive(Clone, Copy)]
pub struct Scan<'a> {
    rest: &'a [u8],
}

/// What was expected where something else stands.
#[derive(Clone, Copy, Debug)]
pub struct Wrong<'a> {
    expected: Expected,
    found: &'a [u8],
}

#[derive(Clone, Copy, Debug)]
enum Expected {
    /// A text that describes it.
    Described(&'static str),
    Exactly(&'static str),
}

impl fmt::Display for Expected {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expected::Described(text) => out.write_str(text),
            Expected::Exactly(text) => write!(out, "`{text}`"),
        }
    }
}

/// Found, or what else stands there.
pub type Parsed<'a, T> = Result<T, Wrong<'a>>;

impl fmt::Display for Wrong<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.found.is_empty() {
            return write!(out, "expected {}, but the line ends", self.expected);
        }
        write!(out, "expected {} at {}", self.expected, quoted(self.found))
    }
}

/// The first 40 bytes of `text`, printable.
pub fn quoted(text: &[u8]) -> String {
    let more = if text.len() > 40 { "…" } else { "" };
    format!("`{}{more}`", text[..text.len().min(40)].escape_ascii())
}

impl Wrong<'_> {
    /// How much of the line was left.
    pub fn rest_length(&self) -> usize {
        self.found.len()
    }
}

impl<'a> Scan<'a> {
    /// The whole of `line` is still to be read.
    pub fn new(line: &'a [u8]) -> Scan<'a> {
        Scan { rest: line }
    }

    /// What is still to be read.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The error that `expected` does not stand here.
    pub fn wrong<T>(&self, expected: &'static str) -> Parsed<'a, T> {
        Err(Wrong { expected: Expected::Described(expected), found: self.rest })
    }

    /// The error that `text` does not stand here.
    pub fn lacks<T>(&self, text: &'static str) -> Parsed<'a, T> {
        Err(Wrong { expected: Expected::Exactly(text), found: self.rest })
    }

    /// Passes spaces, if there are any.
    pub fn spaces(&mut self) {
        let count = self.rest.iter().take_while(|byte| **byte == b' ').count();
        self.rest = &self.rest[count..];
    }

    /// Passes `text` if it stands here.
    pub fn passes(&mut self, text: &str) -> bool {
        let Some(rest) = self.rest.strip_prefix(text.as_bytes()) else { return false };
        self.rest = rest;
        true
    }

    /// Passes `text`, which must stand here.
    pub fn literal(&mut self, text: &'static str) -> Parsed<'a, ()> {
        if self.passes(text) { Ok(()) } else { self.lacks(text) }
    }

    /// Passes everything up to and including `text`.
    pub fn after(&mut self, text: &'static str) -> Parsed<'a, ()> {
        match self.rest.windows(text.len()).position(|window| window == text.as_bytes()) {
            Some(start) => self.rest = &self.rest[start + text.len()..],
            None => return self.lacks(text),
        }
        Ok(())
    }

    /// What stands before `end`, which is passed, too; not empty.
    pub fn until(&mut self, end: u8, expected: &'static str) -> Parsed<'a, &'a [u8]> {
        match self.rest.iter().position(|byte| *byte == end) {
            None | Some(0) => self.wrong(expected),
            Some(length) => {
                let text = &self.rest[..length];
                self.rest = &self.rest[length + 1..];
                Ok(text)
            }
        }
    }

    /// What stands before the next space, which is not passed; not empty.
    pub fn word(&mut self, expected: &'static str) -> Parsed<'a, &'a [u8]> {
        let length = self.rest.iter().position(|byte| *byte == b' ').unwrap_or(self.rest.len());
        if length == 0 {
            return self.wrong(expected);
        }
        let (word, rest) = self.rest.split_at(length);
        self.rest = rest;
        Ok(word)
    }

    /// Everything before `end`, which must be the last byte of the line.
    pub fn up_to_final(&mut self, end: u8, expected: &'static str) -> Parsed<'a, &'a [u8]> {
        match self.rest.split_last() {
            Some((last, text)) if *last == end => {
                self.rest = &[];
                Ok(text)
            }
            _ => self.wrong(expected),
        }
    }

    /// A number in decimal digits.
    pub fn decimal<T: TryFrom<u64>>(&mut self, expected: &'static str) -> Parsed<'a, T> {
        let mut value = 0_u64;
        let mut length = 0;
        for digit in self.rest.iter().take_while(|byte| byte.is_ascii_digit()) {
            length += 1;
            match value.checked_mul(10).and_then(|tens| tens.checked_add(u64::from(digit - b'0'))) {
                Some(larger) => value = larger,
                None => return self.wrong(expected),
            }
        }
        match T::try_from(value) {
            Ok(number) if length > 0 => {
                self.rest = &self.rest[length..];
                Ok(number)
            }
            _ => self.wrong(expected),
        }
    }

    /// A number in decimal digits, perhaps with a minus sign before them.
    pub fn signed<T: TryFrom<i64>>(&mut self, expected: &'static str) -> Parsed<'a, T> {
        let mut behind = *self;
        let negative = behind.passes("-");
        let Ok(magnitude) = behind.decimal::<u64>(expected) else { return self.wrong(expected) };
        let value = i64::try_from(magnitude).map(|value| if negative { -value } else { value });
        match value.ok().and_then(|value| T::try_from(value).ok()) {
            Some(number) => {
                *self = behind;
                Ok(number)
            }
            None => self.wrong(expected),
        }
    }

    /// A number in hexadecimal digits, with or without `0x`.
    pub fn hex(&mut self, expected: &'static str) -> Parsed<'a, u64> {
        let mut behind = *self;
        behind.passes("0x");
        let mut value = 0_u64;
        let mut length = 0;
        for byte in behind.rest {
            let Some(digit) = char::from(*byte).to_digit(16) else { break };
            if value >> 60 != 0 {
                return self.wrong(expected);
            }
            value = value << 4 | u64::from(digit);
            length += 1;
        }
        if length == 0 {
            return self.wrong(expected);
        }
        self.rest = &behind.rest[length..];
        Ok(value)
    }

    /// The line ends here; spaces may come before its end.
    pub fn end(&mut self) -> Parsed<'a, ()> {
        self.spaces();
        if self.rest.is_empty() { Ok(()) } else { self.wrong("the end of the line") }
    }
}
