// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `metadata.yaml` of a rosbag2 bag, version 5 (Humble; later releases read it). `steady export
//! --ros2` writes it.

use std::collections::BTreeMap;
use std::fmt::Write;

use steadyio_recorder::config::RECORD_PREFIX;

use crate::files::FileSummary;
use crate::overview::ChannelOverview;
use crate::summary::ChannelSummary;

/// The longest name of a topic that the middlewares of ROS 2 take.
const NAME_BYTES_MAX: usize = 247;
/// The latest time that rosbag2 can read.
const TIME_NS_MAX: u64 = i64::MAX as u64;

/// The reason why a channel cannot be in a bag; None if it can.
pub fn problem(channel: &ChannelOverview) -> Option<String> {
    let ChannelOverview { topic, encoding, schema_name, schema_encoding, .. } = channel;
    let parts: Vec<&str> = schema_name.split('/').collect();
    if encoding == "mcap" && topic.starts_with(RECORD_PREFIX) {
        // Metadata and attachments are not topics.
        None
    } else if !is_name(topic) {
        Some(format!(
            "topic {topic:?}: a name of ROS 2 has at most {NAME_BYTES_MAX} letters, digits, '_' and \
             '/', no digit at its beginning or after a '/', and no '/' before another or at its end"
        ))
    } else if encoding != "cdr" {
        Some(format!("topic {topic}: its encoding is {encoding:?}, and must be \"cdr\""))
    } else if !matches!(schema_encoding.as_str(), "ros2msg" | "ros2idl") {
        Some(format!(
            "topic {topic}: its schema is in {schema_encoding:?}, and must be in \"ros2msg\" or \
             \"ros2idl\""
        ))
    } else if parts.len() != 3 || parts.iter().any(|part| part.is_empty()) {
        Some(format!(
            "topic {topic}: its type is {schema_name:?}, and must be such as \"sensor_msgs/msg/Imu\""
        ))
    } else {
        None
    }
}

/// Whether a publisher can have this topic. `ros2 bag play` ends at one that it cannot have.
fn is_name(topic: &str) -> bool {
    let is_part = |part: &str| {
        let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        part.starts_with(|first: char| !first.is_ascii_digit()) && part.chars().all(is_allowed)
    };
    topic.len() <= NAME_BYTES_MAX
        && topic.strip_prefix('/').unwrap_or(topic).split('/').all(is_part)
}

/// A topic of a bag.
struct Topic {
    type_name: String,
    /// YAML, as rosbag2 writes it into the metadata of a channel.
    offered_qos_profiles: String,
    messages: u64,
}

/// The channels by topic. If recordings offered a topic with different QoS profiles, the first ones
/// count.
fn topics(channels: &[ChannelSummary]) -> BTreeMap<&str, Topic> {
    let mut topics: BTreeMap<&str, Topic> = BTreeMap::new();
    for ChannelSummary { topic, messages, type_name, metadata, .. } in channels {
        let qos = metadata.iter().find(|(key, _)| key == "offered_qos_profiles");
        let topic = topics.entry(topic).or_insert_with(|| Topic {
            type_name: type_name.clone(),
            offered_qos_profiles: qos.map(|(_, value)| value.clone()).unwrap_or_default(),
            messages: 0,
        });
        topic.messages += messages;
    }
    topics
}

/// The text of `metadata.yaml` for these files.
pub fn metadata(channels: &[ChannelSummary], files: &[(String, FileSummary)]) -> String {
    let times = |file: &FileSummary| (file.start_ns.min(TIME_NS_MAX), file.end_ns.min(TIME_NS_MAX));
    let start_ns = files.iter().map(|(_, file)| times(file).0).min().unwrap_or(0);
    let end_ns = files.iter().map(|(_, file)| times(file).1).max().unwrap_or(0);
    let messages: u64 = files.iter().map(|(_, file)| file.messages).sum();
    let mut text = format!(
        "rosbag2_bagfile_information:\n  version: 5\n  storage_identifier: mcap\n  duration:\n    \
         nanoseconds: {}\n  starting_time:\n    nanoseconds_since_epoch: {start_ns}\n  \
         message_count: {messages}\n  topics_with_message_count:\n",
        end_ns - start_ns
    );
    // Writing to a String cannot fail.
    for (name, Topic { type_name, offered_qos_profiles, messages }) in topics(channels) {
        let _ = write!(
            text,
            "    - topic_metadata:\n        name: {}\n        type: {}\n        \
             serialization_format: cdr\n        offered_qos_profiles: {}\n      \
             message_count: {messages}\n",
            quoted(name),
            quoted(&type_name),
            quoted(&offered_qos_profiles)
        );
    }
    text += "  compression_format: \"\"\n  compression_mode: \"\"\n  relative_file_paths:\n";
    for (name, _) in files {
        let _ = writeln!(text, "    - {}", quoted(name));
    }
    text += "  files:\n";
    for (name, file) in files {
        let (messages, (start_ns, end_ns)) = (file.messages, times(file));
        let _ = write!(
            text,
            "    - path: {}\n      starting_time:\n        nanoseconds_since_epoch: {start_ns}\n      \
             duration:\n        nanoseconds: {}\n      message_count: {messages}\n",
            quoted(name),
            end_ns - start_ns
        );
    }
    text
}

/// Line ends of YAML 1.1, a byte order mark, and what YAML does not allow.
const NOT_PRINTABLE: [char; 5] = ['\u{2028}', '\u{2029}', '\u{feff}', '\u{fffe}', '\u{ffff}'];

/// A YAML string in double quotes.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted += "\\n",
            c if c.is_control() || NOT_PRINTABLE.contains(&c) => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_a_quoted_string() {
        assert_eq!(quoted("a\"b\\c\nd\u{7f}é: #"), r#""a\"b\\c\nd\u007fé: #""#);
        assert_eq!(quoted("\u{2028}\u{feff}\u{ffff}"), r#""\u2028\ufeff\uffff""#);
    }

    #[test]
    fn a_name_is_one_that_a_publisher_can_have() {
        for name in ["/imu", "imu", "/a_1/_b/C", &format!("/{}", "a".repeat(246))] {
            assert!(is_name(name), "{name}");
        }
        let long = format!("/{}", "a".repeat(247));
        for name in
            ["", "/", "/a/", "//a", "/a b", "/1", "/a/2", "/a-b", "/é", "~/a", "/{a}", &long]
        {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn no_time_is_later_than_rosbag2_can_read() {
        let file = FileSummary { messages: 2, start_ns: 7, end_ns: u64::MAX, bytes: 0 };
        let text = metadata(&[], &[("bag_0.mcap".into(), file)]);
        assert_eq!(text.matches(&(i64::MAX - 7).to_string()).count(), 2, "{text}");
        assert!(!text.contains(&u64::MAX.to_string()), "{text}");
    }
}
