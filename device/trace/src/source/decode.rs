// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a raw record to its event, by the formats of the kernel that wrote it.

use serde::{Deserialize, Serialize};

use super::fields::Layout;
use super::format::Format;
use super::wanted::{Decode, Wanted};
use crate::event::{Comm, EventKind};

/// A wanted event that this kernel does not have, or not in a form that can be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreadable {
    /// As `system:name`.
    pub event: String,
    pub why: String,
}

/// What one record holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The thread in whose context it was made.
    pub pid: u32,
    /// Its name, if this event carries it.
    pub comm: Option<Comm>,
    pub what: EventKind,
}

impl Decoded {
    /// The kernel dropped `count` records, later than `since_ns`.
    pub fn lost(count: u64, since_ns: u64) -> Decoded {
        let what = EventKind::Lost { count, since_ns: Some(since_ns) };
        Decoded { pid: 0, comm: None, what }
    }
}

/// Decodes the records of one kernel.
#[derive(Debug, Default)]
pub struct Decoder {
    /// By the ID of the event; those not wanted are `None`.
    events: Vec<Option<OneEvent>>,
}

#[derive(Clone, Debug)]
struct OneEvent {
    name: String,
    decode: Decode,
    layout: Layout,
    /// The thread's ID and name.
    thread: Layout,
}

impl Decoder {
    /// Prepares for records of `wanted`; or why they cannot be read.
    pub fn add(&mut self, wanted: &Wanted, format: &Format) -> Result<(), String> {
        let layout = Layout::new(format, &wanted.fields)?;
        let thread = Layout::new(format, &["common_pid", wanted.comm_field()])?;
        let place = usize::from(format.id);
        if self.events.len() <= place {
            self.events.resize(place + 1, None);
        }
        let name = format.name.clone();
        self.events[place] = Some(OneEvent { name, decode: wanted.decode, layout, thread });
        Ok(())
    }

    /// The event of a record; `None` if it is not wanted, an error if it contradicts its format.
    pub fn decode(&self, data: &[u8]) -> Result<Option<Decoded>, String> {
        let id = match data {
            [low, high, ..] => u16::from_le_bytes([*low, *high]),
            _ => return Err(format!("a record of {} bytes", data.len())),
        };
        let Some(Some(event)) = self.events.get(usize::from(id)) else { return Ok(None) };
        let bad = || {
            let hex: Vec<String> = data.iter().take(64).map(|byte| format!("{byte:02x}")).collect();
            format!("not a record of {}: {}", event.name, hex.concat())
        };
        let fields = event.layout.record(data).ok_or_else(bad)?;
        let thread = event.thread.record(data).ok_or_else(bad)?;
        let what = event.decode.take(&fields).ok_or_else(bad)?;
        Ok(Some(Decoded { pid: thread.u32(0).ok_or_else(bad)?, comm: thread.comm(1), what }))
    }
}
