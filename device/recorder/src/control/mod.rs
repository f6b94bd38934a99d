// SPDX-License-Identifier: MIT OR Apache-2.0
//! What may be asked of a running recorder, and a Unix socket through which other programs ask.
//!
//! `docs/spec/control-1.md` is the protocol. Reading order: [`status`] (how it goes, as JSON),
//! [`socket`] (a name in the file system), [`server`] (its thread, which the recorder never waits
//! for), [`client`] (the other side).

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::pool::meters::Meters;
use super::pool::registry::Registry;

pub mod client;
pub mod server;
pub mod socket;
pub mod status;

/// Version of requests and answers.
pub const SCHEMA: &str = "steadyio.control/1";

/// What does not change while a recorder runs.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    pub recording_id: [u8; 16],
    /// Wall clock.
    pub started_ns: u64,
    pub loss_window_ns: u64,
    pub segment_bytes: u64,
    pub segments: u64,
}

/// What may be asked; of [`crate::pool::Recorder::control`].
#[derive(Debug, Clone)]
pub struct Control {
    pub(crate) registry: Arc<Registry>,
    pub(crate) meters: Arc<Meters>,
    pub(crate) facts: Facts,
}

/// A line that a program sends.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
enum Request {
    Status {},
}

impl Control {
    /// The answer to a line; nothing asks for the status.
    pub fn answer(&self, line: &[u8]) -> Value {
        let request = match line.trim_ascii() {
            b"" => Ok(Request::Status {}),
            line => serde_json::from_slice(line),
        };
        match request {
            Ok(Request::Status {}) => json!(self.status()),
            Err(error) => refused(&format!("no such request: {error}")),
        }
    }
}

fn refused(why: &str) -> Value {
    json!({ "schema": SCHEMA, "error": why })
}
