// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sends requests to a running recorder. `steady status` and `steady incidents` call it.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

/// The time limit for an answer. Some requests are answered only when they are done.
const PATIENCE: Duration = Duration::from_secs(30);

/// The request failed, or was rejected.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error("{path}: {why}: is a recorder with this socket running?")]
    Io { path: String, why: io::Error },
    #[error(
        "{path}: no answer within {patience:?}; recording may not have begun, as producers have not \
         declared their topics, or its device fails"
    )]
    Late { path: String, patience: Duration },
    #[error("{0}: answer is not JSON")]
    NoJson(String),
    #[error("{0}")]
    Refused(String),
}

/// How long a recorder may need to keep an incident. If it holds records in memory, it waits for
/// those after the incident, and may have to write much to a slow card.
pub fn patience_to_keep(path: &Path) -> Result<Duration, AskError> {
    const TO_WRITE: Duration = Duration::from_secs(600);
    let status = ask(path, &json!({ "do": "status" }))?;
    let after_ns = status.pointer("/config/incident_after_ns").and_then(Value::as_u64);
    Ok(after_ns.map_or(PATIENCE, |ns| TO_WRITE.saturating_add(Duration::from_nanos(ns))))
}

/// Sends a request, and returns the answer.
pub fn ask(path: &Path, request: &Value) -> Result<Value, AskError> {
    ask_within(path, request, PATIENCE)
}

/// Like [`ask`], with a time limit of `patience`.
pub fn ask_within(path: &Path, request: &Value, patience: Duration) -> Result<Value, AskError> {
    let named = path.display().to_string();
    let answer = exchange(path, request, patience).map_err(|why| match why.kind() {
        io::ErrorKind::WouldBlock => AskError::Late { path: named.clone(), patience },
        _ => AskError::Io { path: named.clone(), why },
    })?;
    let answer: Value = serde_json::from_slice(&answer).map_err(|_| AskError::NoJson(named))?;
    match answer.get("error").and_then(Value::as_str) {
        Some(why) => Err(AskError::Refused(why.into())),
        None => Ok(answer),
    }
}

fn exchange(path: &Path, request: &Value, patience: Duration) -> io::Result<Vec<u8>> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(patience))?;
    stream.write_all(format!("{request}\n").as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(answer)
}
