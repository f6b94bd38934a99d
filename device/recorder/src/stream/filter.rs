// SPDX-License-Identifier: MIT OR Apache-2.0
//! Selects topics by name, for recording, export and reading.

/// A topic, or a pattern with `*` for any characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicPattern(String);

impl TopicPattern {
    pub fn new(pattern: &str) -> TopicPattern {
        TopicPattern(pattern.into())
    }

    pub fn matches(&self, topic: &str) -> bool {
        let Some((start, rest)) = self.0.split_once('*') else { return self.0 == topic };
        let Some(mut topic) = topic.strip_prefix(start) else { return false };
        let mut parts: Vec<&str> = rest.split('*').collect();
        let end = parts.pop().unwrap_or_default();
        for part in parts {
            let Some(at) = topic.find(part) else { return false };
            topic = &topic[at + part.len()..];
        }
        topic.ends_with(end)
    }

    pub fn text(&self) -> &str {
        &self.0
    }
}

/// The selected topics of an input.
#[derive(Debug, Clone, Default)]
pub struct TopicFilter {
    /// The included topics; empty for all.
    pub included: Vec<TopicPattern>,
    /// The topics to leave out of the included ones.
    pub excluded: Vec<TopicPattern>,
}

impl TopicFilter {
    pub fn takes(&self, topic: &str) -> bool {
        let in_any = |patterns: &[TopicPattern]| patterns.iter().any(|one| one.matches(topic));
        (self.included.is_empty() || in_any(&self.included)) && !in_any(&self.excluded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        let cases = [
            ("/a", "/a", true),
            ("/a", "/ab", false),
            ("/camera/*", "/camera/left/image", true),
            ("/camera/*", "/camera", false),
            ("*/image", "/camera/left/image", true),
            ("/*/left/*", "/camera/left/image", true),
            ("/*/right/*", "/camera/left/image", false),
            // The same characters must not match twice.
            ("/a*a", "/a", false),
            ("*", "", true),
        ];
        for (pattern, topic, matches) in cases {
            assert_eq!(TopicPattern::new(pattern).matches(topic), matches, "{pattern} {topic}");
        }
    }

    #[test]
    fn an_excluded_topic_is_left_out_of_the_included_ones() {
        let patterns = |texts: &[&str]| texts.iter().map(|text| TopicPattern::new(text)).collect();
        let filter =
            TopicFilter { included: patterns(&["/a*", "/b"]), excluded: patterns(&["*/raw"]) };
        assert!(filter.takes("/a/1") && filter.takes("/b"));
        assert!(!filter.takes("/a/raw") && !filter.takes("/c"));
        assert!(TopicFilter::default().takes("/c"));
    }
}
