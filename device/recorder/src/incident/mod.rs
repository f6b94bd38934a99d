// SPDX-License-Identifier: MIT OR Apache-2.0
//! Incidents protect segments from being overwritten until they are released.
//!
//! A pool overwrites its oldest segment, regardless of its contents. After a crash or a near miss,
//! users need the records before it. An incident names the segments with the last seconds, and
//! protects them in this recording and in later ones.
//!
//! Reading order: [`crate::pool::pins`] (the segments that the writer thread may not use),
//! [`files`] (storage of incidents), [`keeper`] (the interface for other threads).

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::mcap::private::Identity;

pub mod files;
pub mod keeper;

/// The version of the files.
pub const SCHEMA: &str = "steadyio.incident/1";

/// The longest name. File names have at most 255 bytes.
const NAME_BYTES_MAX: usize = 64;

/// A segment as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptSegment {
    /// The segment's name in the pool, without the suffix that says whether it has records.
    pub file: String,
    /// The recording id in the segment's metadata.
    pub recording_id: String,
    pub sequence: u64,
}

impl KeptSegment {
    pub fn new(file: String, identity: &Identity) -> KeptSegment {
        let recording_id = hex(&identity.recording_id);
        KeptSegment { file, recording_id, sequence: identity.sequence }
    }

    /// Whether the file still holds this life.
    pub fn is(&self, identity: &Identity) -> bool {
        self.sequence == identity.sequence && self.recording_id == hex(&identity.recording_id)
    }
}

fn hex(id: &[u8; 16]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An incident. `docs/spec/incident-1.schema.json` describes its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incident {
    pub schema: String,
    pub name: String,
    /// The requested time before the end.
    pub asked_ns: u64,
    /// All records that the recorder received from this time on are there, on the wall clock.
    pub from_ns: u64,
    /// The time at which it was taken.
    pub to_ns: u64,
    /// The segments, the oldest first.
    pub segments: Vec<KeptSegment>,
}

impl Incident {
    /// The part of the requested time that the segments hold.
    pub fn covered_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }

    pub fn holds(&self, identity: &Identity) -> bool {
        self.segments.iter().any(|segment| segment.is(identity))
    }
}

/// The incident, and its cost in segments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    pub incident: Incident,
    /// The number of segments that all incidents of the pool keep.
    pub kept_segments: u64,
    /// The number of segments that are left for recording.
    pub free_segments: u64,
    /// Whether all records received before are durable. False if the device takes too long.
    pub durable: bool,
}

impl Kept {
    /// Whether all of the requested time is there and durable.
    pub fn is_whole(&self) -> bool {
        self.durable && self.incident.covered_ns() >= self.incident.asked_ns
    }
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Incident { name, asked_ns, segments, .. } = &self.incident;
        let seconds = |ns: u64| ns as f64 / 1e9;
        let (asked_s, there_s) = (seconds(*asked_ns), seconds(self.incident.covered_ns()));
        if self.incident.covered_ns() < *asked_ns {
            write!(
                f,
                "incident {name}: kept {there_s:.1} s of {asked_s:.1} s: the rest is not there any more"
            )?;
        } else {
            write!(f, "incident {name}: kept the last {asked_s:.1} s")?;
        }
        let (count, free) = (segments.len(), self.free_segments);
        write!(f, "; {count} segments, and {free} are left to record in")?;
        if !self.durable {
            write!(f, "; not all of it is durable yet")?;
        }
        Ok(())
    }
}

/// An incident was not taken or released. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum IncidentError {
    #[error(
        "incident {0:?}: a name has 1 to {NAME_BYTES_MAX} letters, digits, '.', '_' and '-', and \
         begins with a letter or digit"
    )]
    Name(String),
    #[error("incident {0}: duration must be greater than 0")]
    NoTime(String),
    #[error("incident {0}: name is taken (choose another, or release that incident)")]
    Exists(String),
    #[error("{}: has no incident {name}; it has {others}", dir.display())]
    Unknown { dir: PathBuf, name: String, others: String },
    #[error("incident {name}: the pool has {max} incidents, as many as allowed (release one)")]
    TooMany { name: String, max: u64 },
    #[error("incident {0}: nothing is recorded yet")]
    Nothing(String),
    #[error(
        "incident {name}: the last {:.1} s are in {needed} segments; keeping them leaves {free} of \
         {segments} to record in, but recording needs 2 (ask for less, release an incident, or \
         record with more segments)", last.as_secs_f64()
    )]
    NoRoom {
        name: String,
        last: Duration,
        /// The number of segments that are not kept yet.
        needed: usize,
        /// The number of segments that would be left.
        free: usize,
        /// The number of segments of the pool.
        segments: usize,
    },
    #[error("incident {0}: the recording has ended")]
    Ended(String),
    #[error(
        "incident {name}: not taken: the writer thread did not answer within {} s; does the device \
         fail?", waited.as_secs()
    )]
    NoAnswer { name: String, waited: Duration },
    #[error("{}: {why}", path.display())]
    Io { path: PathBuf, why: io::Error },
    #[error(
        "{}: cannot be read as an incident: {why}; the segments it keeps are unknown (repair it, \
         or move it elsewhere to release them)", path.display()
    )]
    Unreadable { path: PathBuf, why: String },
}

/// Checks a name. It becomes a part of a file name.
pub fn check_name(name: &str) -> Result<(), IncidentError> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if begins && name.len() <= NAME_BYTES_MAX && name.bytes().all(allowed) {
        Ok(())
    } else {
        Err(IncidentError::Name(name.into()))
    }
}
