// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whole numbers with limits, for serde; the TOML reader adds line and key to the message.

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

/// Reads a whole number from `MIN` to `MAX`; the error names the value and both limits.
pub fn bounded<'de, D, const MIN: u64, const MAX: u64>(de: D) -> Result<u64, D::Error>
where
    D: Deserializer<'de>,
{
    let value = i64::deserialize(de)?;
    match u64::try_from(value) {
        Ok(number) if (MIN..=MAX).contains(&number) => Ok(number),
        _ => Err(D::Error::custom(format!("{value} is out of range: must be {MIN} to {MAX}"))),
    }
}
