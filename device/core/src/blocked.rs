// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses k2's counts of real-time requests that waited for background: `iosched/rt_blocked`
//! (docs/reference/k2.md). The bench and `watch` use it.

use serde::Serialize;

/// The counts since k2 was selected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Blocked {
    /// The number of all waits.
    pub count: u64,
    /// The number of waits longer than the bound.
    pub over: u64,
    /// The longest wait that the bound covers.
    pub max_ns: u64,
    /// The number of waits that the bound does not cover.
    pub unguarded: u64,
    pub unguarded_max_ns: u64,
    /// The sum of all waits. `None`: this version of k2 does not have it.
    #[serde(skip)]
    pub sum_ns: Option<u64>,
}

impl Blocked {
    /// Parses the counts; `None` if a number is missing.
    pub fn parse(text: &str) -> Option<Blocked> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let after = |name: &str, nth: usize| -> Option<u64> {
            words.windows(2).filter(|pair| pair[0] == name).nth(nth)?[1].parse().ok()
        };
        Some(Blocked {
            count: after("count", 0)?,
            over: after("over", 0)?,
            max_ns: after("max_ns", 0)?,
            unguarded: after("unguarded", 0)?,
            unguarded_max_ns: after("max_ns", 1)?,
            sum_ns: after("sum_ns", 0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_have_a_sum_only_in_newer_versions() {
        let line = "count 9 over 1 max_ns 700 unguarded 2 max_ns 900";
        let (count, over, unguarded) = (9, 1, 2);
        let (max_ns, unguarded_max_ns, sum_ns) = (700, 900, None);
        let old = Blocked { count, over, max_ns, unguarded, unguarded_max_ns, sum_ns };
        assert_eq!(Blocked::parse(line), Some(old));
        let new = Blocked { sum_ns: Some(4000), ..old };
        assert_eq!(Blocked::parse(&format!("{line} sum_ns 4000")), Some(new));
    }

    #[test]
    fn a_line_without_all_numbers_is_none() {
        assert_eq!(Blocked::parse("count 9 over 1 max_ns x unguarded 2 max_ns 900"), None);
        assert_eq!(Blocked::parse("count 9 over 1 max_ns 700 unguarded 2"), None);
    }
}
