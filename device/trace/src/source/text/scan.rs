// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a line from left to right. The readers of ftrace's and perf's text use it.

use std::str::FromStr;

/// The kernel's limit of a thread's name.
pub const NAME_BYTES_MAX: usize = 15;

/// For errors: the text that was found instead of the expected one, up to 40 bytes, printable.
pub fn found(text: &[u8]) -> String {
    match text {
        [] => "at the end of the line".to_owned(),
        _ if text.len() > 40 => format!("at `{}…`", text[..40].escape_ascii()),
        _ => format!("at `{}`", text.escape_ascii()),
    }
}

/// The rest of a line. Each method removes the part that it finds at the beginning; after a
/// failure, the parts before it stay removed.
#[derive(Clone, Copy, Debug)]
pub struct Scan<'a>(pub &'a [u8]);

impl<'a> Scan<'a> {
    /// Removes `count` bytes, which must be there.
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken
    }

    pub fn text(&mut self, text: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(text)?;
        Some(())
    }

    /// The bytes at the beginning that satisfy `is`; perhaps none.
    pub fn while_is(&mut self, is: impl Fn(u8) -> bool) -> &'a [u8] {
        self.take(self.0.iter().take_while(|byte| is(**byte)).count())
    }

    /// Removes all spaces at the beginning, and returns their number.
    pub fn spaces(&mut self) -> usize {
        self.while_is(|byte| byte == b' ').len()
    }

    /// Removes one space or more.
    pub fn gap(&mut self) -> Option<()> {
        (self.spaces() > 0).then_some(())
    }

    /// A decimal number that fits into `T`.
    pub fn number<T: FromStr>(&mut self) -> Option<T> {
        number(self.while_is(|byte| byte.is_ascii_digit()))
    }

    /// The time, in ns: `SECONDS.DECIMALS:` with 6 or 9 decimals and a space after it.
    pub fn time_ns(&mut self) -> Option<u64> {
        let seconds: u64 = self.number()?;
        self.text(b".")?;
        let decimals = self.while_is(|byte| byte.is_ascii_digit());
        let unit_ns = match decimals.len() {
            6 => 1000,
            9 => 1,
            _ => return None,
        };
        self.text(b":")?;
        self.gap()?;
        let fraction_ns = number::<u64>(decimals)? * unit_ns;
        seconds.checked_mul(1_000_000_000)?.checked_add(fraction_ns)
    }
}

pub fn number<T: FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
