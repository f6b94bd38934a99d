// SPDX-License-Identifier: MIT OR Apache-2.0
//! A cause of one I/O's or request's duration, with evidence in the trace.
//!
//! A cause is a fact with the time that it accounts for. Examples: which other requests were in
//! flight while this one waited, how long a flush was in flight, how much slower than usual the
//! device was. Facts overlap, so their times do not add up. A fact that accounts for less than a
//! tenth of the whole time is omitted; without any, the cause is unknown.
//!
//! The record's schema documents the causes; `case` and `own_time` find them.

use serde::Serialize;
use serde_json::Value;

use super::words::us;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cause {
    /// The time that it accounts for, in ns.
    pub ns: u64,
    pub cause: &'static str,
    /// The facts for programs: an object.
    #[serde(flatten)]
    pub facts: Value,
    /// The text for users. The terminal and the lab's report print it unchanged. It begins with the
    /// time in us. It has no semicolon, so that a page can list several causes in one line.
    pub text: String,
}

impl Cause {
    pub fn new(ns: u64, cause: &'static str, facts: Value, text: &str) -> Cause {
        Cause { ns, cause, facts, text: format!("{} us {text}", us(ns)) }
    }
}
