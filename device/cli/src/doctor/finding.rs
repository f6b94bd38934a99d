// SPDX-License-Identifier: MIT OR Apache-2.0
//! A finding of `steady doctor`, which `findings`, `judge` and `declared` make.

use std::path::Path;

use serde::Serialize;

/// One setting that breaks a bound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The stable name, documented in docs/reference/steady-doctor.md.
    pub id: &'static str,
    pub text: String,
    /// The command that fixes it, run as root; None if there is none.
    pub fix: Option<String>,
    /// Another action, or the cost of the command.
    pub advice: Option<String>,
    /// The time that it can add to a response, for `steady bound --overrun`; None if no source
    /// states it.
    pub overrun: Option<String>,
}

/// A path as a word of a shell. Names of control groups have backslashes, and mount points spaces.
pub fn word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._:@%+=,-".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// A finding without a command, advice or time.
pub fn finding(id: &'static str, text: String) -> Finding {
    Finding { id, text, fix: None, advice: None, overrun: None }
}
