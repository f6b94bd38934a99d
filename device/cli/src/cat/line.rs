// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints a message as a line, for `steady cat`. JSON is printed as it was recorded, so that no
//! digit of a number changes.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::de::IgnoredAny;
use serde_json::json;
use steadyio_export::merge::Next;

use crate::selection::text;

/// The number of bytes to print of a message that is not text, except as JSON.
const HEX_BYTES_MAX: usize = 32;

pub struct Line<'a> {
    pub topic: &'a str,
    pub encoding: &'a str,
    pub message: &'a Next,
    pub data: &'a [u8],
}

impl Line<'_> {
    /// Writes time, topic and message.
    pub fn write_text(&self, out: &mut impl Write) -> io::Result<()> {
        write!(out, "{} {} ", text(self.message.log_time_ns), printable(self.topic))?;
        match Data::of(self.data) {
            Data::Json(json) => writeln!(out, "{json}"),
            Data::Text(text) => writeln!(out, "{}", printable(text)),
            Data::Bytes(bytes) => {
                let shown = hex(&bytes[..bytes.len().min(HEX_BYTES_MAX)]);
                let more = if bytes.len() > HEX_BYTES_MAX { "..." } else { "" };
                writeln!(out, "{shown}{more} ({} bytes)", bytes.len())
            }
        }
    }

    /// Writes an object with all values.
    pub fn write_json(&self, out: &mut impl Write) -> io::Result<()> {
        let Line { message, .. } = self;
        let (topic, encoding) = (json!(self.topic), json!(self.encoding));
        write!(out, r#"{{"topic": {topic}, "sequence": {}, "#, message.sequence)?;
        let (log_time_ns, publish_time_ns) = (message.log_time_ns, message.publish_time_ns);
        write!(out, r#""log_time_ns": {log_time_ns}, "publish_time_ns": {publish_time_ns}, "#)?;
        write!(out, r#""encoding": {encoding}, "#)?;
        match Data::of(self.data) {
            Data::Json(json) => writeln!(out, r#""data": {json}}}"#),
            Data::Text(text) => writeln!(out, r#""data": {}}}"#, json!(text)),
            Data::Bytes(bytes) => writeln!(out, r#""data_hex": "{}"}}"#, hex(bytes)),
        }
    }
}

enum Data<'a> {
    /// On one line.
    Json(Cow<'a, str>),
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl Data<'_> {
    fn of(data: &[u8]) -> Data<'_> {
        let Ok(text) = std::str::from_utf8(data) else { return Data::Bytes(data) };
        if serde_json::from_str::<IgnoredAny>(text).is_ok() {
            // Line breaks can only be between tokens; JSON strings have none.
            return Data::Json(match text.contains(['\n', '\r']) {
                true => text.replace(['\n', '\r'], " ").into(),
                false => text.into(),
            });
        }
        let is_binary = |byte: &u8| *byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x1b);
        if data.iter().any(is_binary) { Data::Bytes(data) } else { Data::Text(text) }
    }
}

/// Replaces characters that would control a terminal.
fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(|c: char| c.is_control() && c != '\t') {
        return text.into();
    }
    let escape = |c: char| match c.is_control() && c != '\t' {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(escape).collect::<String>().into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn shown(data: &[u8]) -> String {
        match Data::of(data) {
            Data::Json(json) => format!("json {json}"),
            Data::Text(text) => format!("text {}", printable(text)),
            Data::Bytes(bytes) => format!("bytes {}", hex(bytes)),
        }
    }

    #[test]
    fn json_is_printed_as_it_is_and_nothing_breaks_a_line() {
        for (data, says) in [
            (
                &br#"{"x": 1.10, "n": 12345678901234567890123}"#[..],
                r#"json {"x": 1.10, "n": 12345678901234567890123}"#,
            ),
            (b"{\n \"x\": 1\r\n}", "json {  \"x\": 1  }"),
            (b"{\"x\": 1", "text {\"x\": 1"),
            (b"two\nlines", "text two\\nlines"),
            (b"a\x1b[2Jb", "text a\\u{1b}[2Jb"),
            ("\u{9b}2J".as_bytes(), "text \\u{9b}2J"),
            (b"", "text "),
            (b"\x00\x01", "bytes 0001"),
            (b"\xff", "bytes ff"),
        ] {
            assert_eq!(shown(data), says);
        }
    }
}
