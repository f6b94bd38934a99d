// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a line from its beginning, part by part.

use std::str::FromStr;

/// The rest of a line. Each part is read if it stands there; what was read before stays read.
#[derive(Clone, Copy, Debug)]
pub struct Scan<'a>(pub &'a [u8]);

impl<'a> Scan<'a> {
    /// So many bytes, which are there.
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken
    }

    pub fn text(&mut self, text: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(text)?;
        Some(())
    }

    /// Bytes of that kind, perhaps none.
    pub fn while_is(&mut self, is: impl Fn(u8) -> bool) -> &'a [u8] {
        self.take(self.0.iter().take_while(|byte| is(**byte)).count())
    }

    /// Spaces, perhaps none; how many.
    pub fn spaces(&mut self) -> usize {
        self.while_is(|byte| byte == b' ').len()
    }

    /// One space at least.
    pub fn gap(&mut self) -> Option<()> {
        (self.spaces() > 0).then_some(())
    }

    /// A decimal number that fits.
    pub fn number<T: FromStr>(&mut self) -> Option<T> {
        number(self.while_is(|byte| byte.is_ascii_digit()))
    }

    /// `SECONDS.DECIMALS:` with 6 or 9 decimals and a space behind, in ns.
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
