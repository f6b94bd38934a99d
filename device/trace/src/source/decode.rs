// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decodes raw records into events, with the formats of the kernel that wrote them. `pages` and
//! `capture::watch` call it.

use super::fields::{Fields, Layout, layout};
use super::format::{Format, PageFormat};
use super::table::Wanted;
use crate::event::Event;

/// The decoder of one kernel's records and pages.
#[derive(Debug, Default)]
pub struct Decoder {
    pub page: PageFormat,
    /// The wanted events by their ID; `None` for others. Two fields are appended to those of the
    /// table: the thread's number and name.
    events: Vec<Option<(&'static Wanted, Layout)>>,
}

impl Decoder {
    pub fn new(page: PageFormat) -> Decoder {
        Decoder { page, ..Decoder::default() }
    }

    /// Prepares to decode records of `wanted`. The error says why they cannot be read.
    pub fn add(&mut self, wanted: &'static Wanted, format: &Format) -> Result<(), String> {
        let names = [&wanted.fields[..], &["common_pid", wanted.comm_field()]].concat();
        let layout = layout(format, &names)?;
        let place = usize::from(format.id);
        if self.events.len() <= place {
            self.events.resize_with(place + 1, || None);
        }
        self.events[place] = Some((wanted, layout));
        Ok(())
    }

    /// Decodes a record; `None` if the event is not wanted. A record that contradicts its format is
    /// an error.
    pub fn decode(&self, time_ns: u64, cpu: u32, data: &[u8]) -> Result<Option<Event>, String> {
        let Some(id) = data.first_chunk() else {
            return Err(format!("a record of {} bytes", data.len()));
        };
        let id = usize::from(u16::from_le_bytes(*id));
        let Some(Some((wanted, layout))) = self.events.get(id) else { return Ok(None) };
        let event = || {
            let (fields, behind) = (Fields::of_record(data, layout)?, wanted.fields.len());
            let (pid, comm) = (fields.number(behind)?, fields.comm(behind + 1).unwrap_or_default());
            Some(Event { time_ns, cpu, pid, comm, what: (wanted.decode)(&fields)? })
        };
        event().map(Some).ok_or_else(|| {
            let hex: String = data.iter().take(64).map(|byte| format!("{byte:02x}")).collect();
            format!("not a record of {}: {hex}", wanted.name)
        })
    }
}
