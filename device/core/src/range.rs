// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads whole numbers with limits, for serde. The TOML reader adds line and key to the error.
//! Specs and profiles use it.

use std::fmt;

use serde::de::{Deserializer, Error, Visitor};

struct Bounds<const MIN: u64, const MAX: u64>;

impl<const MIN: u64, const MAX: u64> Visitor<'_> for Bounds<MIN, MAX> {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from {MIN} to {MAX}")
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<u64, E> {
        match u64::try_from(value) {
            Ok(number) if (MIN..=MAX).contains(&number) => Ok(number),
            _ => Err(E::custom(format!("{value} is out of range: must be {MIN} to {MAX}"))),
        }
    }
}

/// Reads a whole number from `MIN` to `MAX`. The error names the value and both limits.
pub fn bounded<'de, D, const MIN: u64, const MAX: u64>(de: D) -> Result<u64, D::Error>
where
    D: Deserializer<'de>,
{
    de.deserialize_i64(Bounds::<MIN, MAX>)
}
