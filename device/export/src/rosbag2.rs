// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `metadata.yaml` of a rosbag2 bag, version 5 (Humble; later releases read it). `steady export
//! --ros2` writes it.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::files::FileSummary;
use crate::overview::ChannelOverview;
use crate::summary::ChannelSummary;

/// The reason why a channel cannot be in a bag; None if it can.
pub fn problem(channel: &ChannelOverview) -> Option<String> {
    let ChannelOverview { topic, encoding, schema_name, schema_encoding, .. } = channel;
    let parts: Vec<&str> = schema_name.split('/').collect();
    if encoding == "mcap" {
        // Metadata and attachments are not topics.
        None
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
    let start_ns = files.iter().map(|(_, file)| file.start_ns).min().unwrap_or(0);
    let end_ns = files.iter().map(|(_, file)| file.end_ns).max().unwrap_or(0);
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
    for (name, FileSummary { messages, start_ns, end_ns, .. }) in files {
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

/// A YAML string in double quotes.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted += "\\n",
            c if c.is_control() => {
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
    }
}
