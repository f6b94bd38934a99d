// SPDX-License-Identifier: MIT OR Apache-2.0
//! Selects messages by topic and log time. `merge` and the survey use it.

use std::collections::BTreeSet;
use std::ops::Range;

use steadyio_recorder::stream::filter::TopicPattern;

/// The selected topics and log times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// The topics; empty for all.
    pub topics: Vec<TopicPattern>,
    /// The log times from the first up to the last, exclusive; `u64::MAX` means no end.
    pub times_ns: Range<u64>,
}

impl Selection {
    pub fn wants_topic(&self, topic: &str) -> bool {
        self.topics.is_empty() || self.topics.iter().any(|pattern| pattern.matches(topic))
    }

    pub fn wants_time(&self, log_time_ns: u64) -> bool {
        self.wants_some_of((log_time_ns, log_time_ns))
    }

    /// Whether any of these times, both ends included, is selected.
    pub fn wants_some_of(&self, (start_ns, end_ns): (u64, u64)) -> bool {
        let begins_before_the_end = self.times_ns.end == u64::MAX || start_ns < self.times_ns.end;
        begins_before_the_end && end_ns >= self.times_ns.start
    }

    /// The first pattern that matches none of these topics.
    pub fn unknown_topic(&self, topics: &BTreeSet<String>) -> Option<&str> {
        let known = |pattern: &&TopicPattern| topics.iter().any(|topic| pattern.matches(topic));
        self.topics.iter().find(|pattern| !known(pattern)).map(TopicPattern::text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_times_is_not_wanted() {
        let selection = Selection { topics: Vec::new(), times_ns: 10..20 };
        assert!(selection.wants_time(10) && !selection.wants_time(20));
        assert!(selection.wants_some_of((0, 10)) && selection.wants_some_of((19, 30)));
        assert!(!selection.wants_some_of((0, 9)) && !selection.wants_some_of((20, 30)));
    }

    #[test]
    fn without_an_end_the_last_possible_time_is_wanted() {
        let selection = Selection { topics: Vec::new(), times_ns: 0..u64::MAX };
        assert!(selection.wants_time(u64::MAX) && selection.wants_some_of((u64::MAX, u64::MAX)));
    }
}
