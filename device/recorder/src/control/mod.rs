// SPDX-License-Identifier: MIT OR Apache-2.0
//! The requests that a running recorder answers, and the Unix socket that receives them. `steady
//! record` and `capi` open the socket.
//!
//! `docs/spec/control-1.md` is the protocol. Reading order: [`status`] (the state of a recording as
//! JSON), [`socket`] (its name in the file system), [`server`] (the thread, for which the recorder
//! never waits), [`client`] (the side of the requester).

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::Builder;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::config::RamConfig;
use super::incident::keeper::Keeper;
use super::incident::{IncidentError, Kept};
use super::pool::meters::Meters;
use super::pool::registry::Registry;

pub mod client;
pub mod server;
pub mod socket;
pub mod status;

/// The version of requests and answers.
pub const SCHEMA: &str = "steadyio.control/1";

/// The facts about a recording that do not change while it runs.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    pub recording_id: [u8; 16],
    /// The start, on the wall clock.
    pub started_ns: u64,
    pub loss_window_ns: u64,
    pub segment_bytes: u64,
    pub segments: u64,
    /// The memory that holds records until an incident.
    pub ram: Option<RamConfig>,
}

/// Answers requests to a recorder. [`crate::pool::Recorder::control`] returns it.
#[derive(Debug, Clone)]
pub struct Control {
    pub(crate) registry: Arc<Registry>,
    pub(crate) meters: Arc<Meters>,
    pub(crate) keeper: Arc<Keeper>,
    pub(crate) facts: Facts,
}

/// A request: one line of JSON.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
enum Request {
    Status {},
    KeepIncident { name: String, last_s: f64 },
    ReleaseIncident { name: String },
}

/// The answer to a request.
#[derive(Debug)]
pub enum Answer {
    Now(Value),
    /// The answer waits for the device. It comes on this channel, or the sender is dropped.
    Later(Receiver<Value>),
}

impl Control {
    /// Answers one line; an empty line asks for the status.
    pub fn answer(&self, line: &[u8]) -> Answer {
        let request = match line.trim_ascii() {
            b"" => Ok(Request::Status {}),
            line => serde_json::from_slice(line),
        };
        match request {
            Ok(Request::Status {}) => Answer::Now(json!(self.status())),
            Ok(Request::KeepIncident { name, last_s }) => self.keep_incident(name, last_s),
            Ok(Request::ReleaseIncident { name }) => self.later(move |keeper| {
                keeper.release(&name).map(|()| json!({ "schema": SCHEMA, "released": name }))
            }),
            Err(error) => Answer::Now(refused(&format!("no such request: {error}"))),
        }
    }

    fn keep_incident(&self, name: String, last_s: f64) -> Answer {
        match Duration::try_from_secs_f64(last_s) {
            Ok(last) => {
                self.later(move |keeper| keeper.keep(&name, last).map(|kept| kept_json(&kept)))
            }
            Err(error) => Answer::Now(refused(&format!("last_s = {last_s}: {error}"))),
        }
    }

    /// Runs a request in a separate thread, so that other clients get their answers meanwhile.
    fn later(
        &self,
        what: impl FnOnce(&Keeper) -> Result<Value, IncidentError> + Send + 'static,
    ) -> Answer {
        let (sender, receiver) = channel();
        let keeper = Arc::clone(&self.keeper);
        let thread = Builder::new().name("steady-incident".into()).spawn(move || {
            let answer = what(&keeper).unwrap_or_else(|error| refused(&error.to_string()));
            // The client may be gone.
            let _ = sender.send(answer);
        });
        match thread {
            Ok(_) => Answer::Later(receiver),
            Err(error) => Answer::Now(refused(&format!("no thread: {error}"))),
        }
    }
}

fn kept_json(kept: &Kept) -> Value {
    let covered_ns = kept.incident.covered_ns();
    json!({
        "schema": SCHEMA,
        "incident": kept.incident,
        "covered_ns": covered_ns,
        "kept_segments": kept.kept_segments,
        "free_segments": kept.free_segments,
        "durable": kept.durable,
    })
}

fn refused(why: &str) -> Value {
    json!({ "schema": SCHEMA, "error": why })
}
