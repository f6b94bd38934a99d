// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the losses of recorders from their control sockets (docs/spec/control-1.md). `watch` calls
//! it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use steadyio_recorder::control::client::{AskError, ask_within};

/// The time limit for an answer. The watch must not wait for a recorder that hangs.
const PATIENCE: Duration = Duration::from_millis(500);

/// The counts since the recording began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    pub recording_id: String,
    pub state: String,
    pub received: u64,
    pub lost: u64,
    /// The number of syncs that came later than the loss window allows.
    pub late_syncs: u64,
    pub failures: u64,
}

impl Status {
    fn ask(socket: &Path) -> Result<Status, AskError> {
        let answer = ask_within(socket, &json!({ "do": "status" }), PATIENCE)?;
        Ok(Status::of(&answer))
    }

    fn of(answer: &Value) -> Status {
        let number =
            |pointer: &str| answer.pointer(pointer).and_then(Value::as_u64).unwrap_or_default();
        let text = |key: &str| answer[key].as_str().unwrap_or_default().to_string();
        Status {
            recording_id: text("recording_id"),
            state: text("state"),
            received: number("/total/received/records"),
            lost: number("/total/lost_ring_full/records")
                + number("/total/lost_in_writing/records")
                + number("/total/lost_ram_full/records"),
            late_syncs: number("/writer/window_exceeded"),
            failures: number("/writer/failures"),
        }
    }

    /// The growth since `before`; everything if another recording has begun.
    fn since(&self, before: Option<&Status>) -> RecorderInterval {
        let none = Status::default();
        let before =
            before.filter(|before| before.recording_id == self.recording_id).unwrap_or(&none);
        RecorderInterval {
            socket: String::new(),
            state: Some(self.state.clone()),
            received: self.received.saturating_sub(before.received),
            lost: self.lost.saturating_sub(before.lost),
            late_syncs: self.late_syncs.saturating_sub(before.late_syncs),
            failures: self.failures.saturating_sub(before.failures),
            lost_in_all: self.lost,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RecorderInterval {
    pub socket: String,
    /// The state; None if the recorder does not answer.
    pub state: Option<String>,
    pub received: u64,
    pub lost: u64,
    pub late_syncs: u64,
    pub failures: u64,
    pub lost_in_all: u64,
}

/// One socket, asked once per interval.
#[derive(Debug)]
pub struct Recorder {
    socket: PathBuf,
    before: Option<Status>,
    is_silent: bool,
}

impl Recorder {
    pub fn new(socket: &Path) -> Recorder {
        Recorder { socket: socket.into(), before: None, is_silent: false }
    }

    pub fn name(&self) -> String {
        self.socket.display().to_string()
    }

    /// The present answer, and the growth since the last answer.
    pub fn look(&mut self, notices: &mut Vec<String>) -> (Option<Status>, RecorderInterval) {
        let was_silent = self.is_silent;
        let answer = Status::ask(&self.socket);
        self.is_silent = answer.is_err();
        match &answer {
            Ok(_) if was_silent => notices.push(format!("{}: a recorder answers", self.name())),
            Err(error) if !was_silent => notices.push(format!("{error}; it is asked again")),
            _ => {}
        }
        let status = answer.ok();
        let interval = status.as_ref().map(|status| {
            let before = self.before.replace(status.clone());
            // Losses before the first look do not count, but those during a silence do.
            status.since(before.as_ref().or((!was_silent).then_some(status)))
        });
        let interval = RecorderInterval { socket: self.name(), ..interval.unwrap_or_default() };
        (status, interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(id: &str, lost: u64) -> Status {
        Status { recording_id: id.into(), lost, ..Status::default() }
    }

    #[test]
    fn losses_are_those_since_the_last_answer() {
        assert_eq!(status("a", 7).since(Some(&status("a", 5))).lost, 2);
    }

    #[test]
    fn another_recording_has_lost_all_that_it_says() {
        let interval = status("b", 7).since(Some(&status("a", 5)));
        assert_eq!((interval.lost, interval.lost_in_all), (7, 7));
    }

    #[test]
    fn both_kinds_of_loss_are_counted() {
        let answer = json!({ "state": "recording", "total": {
            "lost_ring_full": { "records": 2 }, "lost_in_writing": { "records": 3 } } });
        assert_eq!(Status::of(&answer).lost, 5);
    }
}
