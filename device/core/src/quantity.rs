// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses sizes and durations on the command line. All commands use it.

use std::time::Duration;

const SIZES: [(&str, u64); 14] = [
    ("", 1),
    ("K", 1 << 10),
    ("KiB", 1 << 10),
    ("M", 1 << 20),
    ("MiB", 1 << 20),
    ("G", 1 << 30),
    ("GiB", 1 << 30),
    ("T", 1 << 40),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];

const TIMES: [(&str, u64); 6] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = units.iter().find(|(name, _)| *name == unit.trim_start())?.1;
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// Parses a whole number with a unit. 16384, 16K and 16KiB are the same; 16kB is less.
pub fn size(text: &str) -> Result<u64, String> {
    scaled(text, &SIZES).ok_or_else(|| {
        "must be a whole number, with K, M, G, T (or KiB ..), or kB, MB, GB, TB".into()
    })
}

/// Parses a whole number with a unit.
pub fn duration(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    scaled(text, &TIMES)
        .map(Duration::from_nanos)
        .ok_or_else(|| "must be a whole number with ns, us, ms, s, min or h".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_binary_unless_they_say_otherwise() {
        for (text, bytes) in
            [("512", 512), ("16K", 16_384), ("16KiB", 16_384), ("16kB", 16_000), ("2 MiB", 2 << 20)]
        {
            assert_eq!(size(text), Ok(bytes));
        }
        for text in ["", "K", "1.5K", "-1", "1P", "99999999999999999999", "18014398509481985K"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(duration("5ms"), Ok(Duration::from_millis(5)));
        assert_eq!(duration("2min"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        assert!(duration("5").is_err() && duration("5m").is_err());
    }
}
