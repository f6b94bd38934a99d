// SPDX-License-Identifier: MIT OR Apache-2.0
//! Enabling the wanted events in an instance, as far as this kernel has them.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{CaptureError, folder};
use crate::event::Dev;
use crate::source::decode::Decoder;
use crate::source::format::Format;
use crate::source::table::{self, Need, Wanted, wanted};
use crate::source::tracefs::{Instance, TracefsError};
use crate::source::{Position, Problem};

/// One event that is traced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnabledEvent {
    /// Its folder under `events`.
    pub system: String,
    /// Its folder in that.
    pub name: String,
    /// By which the kernel chooses; empty if it takes all.
    pub filter: String,
    /// Only in the context of the requested threads.
    #[serde(default)]
    pub of_threads: bool,
}

/// A wanted event that this kernel does not have, or not in a form that can be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreadable {
    /// As `system:name`.
    pub event: String,
    pub why: String,
}

/// What is traced, and all that is needed to read it.
#[derive(Debug)]
pub struct Enabled {
    pub events: Vec<EnabledEvent>,
    /// The text of each event's `format`, in the order of `events`.
    pub formats: Vec<String>,
    pub unavailable: Vec<Unreadable>,
    /// The text of `header_page`.
    pub header_page: String,
}

impl Enabled {
    /// Prepares to read their records; `name` is what problems call the trace.
    pub fn decoder(&self, name: &str) -> Result<Decoder, Problem> {
        let mut decoder = Decoder::default();
        for (event, text) in self.events.iter().zip(&self.formats) {
            let path = Path::new(name).join(folder::format_path(event));
            let format = Format::parse(text)
                .map_err(|error| folder::problem(&path, Position::Line(error.line), error.what))?;
            let row = table::by_name(event.name.as_bytes());
            // An event that a later version captured may be unknown here: its records are skipped.
            if let Some(row) = row.filter(|row| row.system == event.system) {
                let added = decoder.add(row, &format);
                added.map_err(|why| folder::problem(&path, Position::Whole, why))?;
            }
        }
        Ok(decoder)
    }
}

/// Where events are enabled.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    pub all: &'a Instance,
    /// Of the requested threads only, if not all are.
    pub of_threads: Option<&'a Instance>,
    /// Switches are wanted of all threads nevertheless.
    pub all_switches: bool,
}

impl<'a> Places<'a> {
    /// Whether it is enabled for the requested threads only, and where.
    fn of(&self, row: &Wanted) -> (bool, &'a Instance) {
        match self.of_threads {
            Some(threads)
                if row.is_of_thread() && !(self.all_switches && row.system == "sched") =>
            {
                (true, threads)
            }
            _ => (false, self.all),
        }
    }
}

/// Enables all that is chosen. Block events are chosen by `devices` if there are any.
pub(super) fn enable(
    places: Places,
    needs: &[Need],
    devices: &[Dev],
) -> Result<Enabled, CaptureError> {
    let mut enabled = Enabled {
        events: Vec::new(),
        formats: Vec::new(),
        unavailable: Vec::new(),
        header_page: places.all.read("events/header_page")?,
    };
    for row in wanted().iter().filter(|row| needs.contains(&row.need)) {
        match enable_one(places.of(row), row, devices)? {
            Ok((event, format)) => {
                enabled.events.push(event);
                enabled.formats.push(format);
            }
            // One line for all of a system that is not there.
            Err(missing) if enabled.unavailable.last() == Some(&missing) => {}
            Err(missing) => enabled.unavailable.push(missing),
        }
    }
    if enabled.events.iter().any(|event| event.system == "block") {
        Ok(enabled)
    } else {
        Err(CaptureError::NoBlockEvents)
    }
}

/// Enables one event, or says why not.
fn enable_one(
    (of_threads, instance): (bool, &Instance),
    row: &'static Wanted,
    devices: &[Dev],
) -> Result<Result<(EnabledEvent, String), Unreadable>, TracefsError> {
    if !instance.path(&format!("events/{}", row.system)).exists() {
        let event = format!("{}:*", row.system);
        return Ok(Err(Unreadable { event, why: absent(row.system).into() }));
    }
    let missing = |why| Ok(Err(Unreadable { event: format!("{}:{}", row.system, row.name), why }));
    let names = [Some(row.name.as_str()), row.old_name];
    let exists = |name: &&str| instance.path(&format!("events/{}/{name}", row.system)).exists();
    let Some(name) = names.into_iter().flatten().find(exists) else {
        return missing("this kernel does not have it".into());
    };
    let dir = format!("events/{}/{name}", row.system);
    let text = instance.read(&format!("{dir}/format"))?;
    let readable = Format::parse(&text).map_err(|error| error.to_string());
    if let Err(why) = readable.and_then(|format| Decoder::default().add(row, &format)) {
        return missing(why);
    }
    let filter = filter(row, devices);
    if !filter.is_empty() {
        instance.write(&format!("{dir}/filter"), &filter)?;
    }
    instance.write(&format!("{dir}/enable"), "1")?;
    let event = EnabledEvent { system: row.system.into(), name: name.into(), filter, of_threads };
    Ok(Ok((event, text)))
}

/// Why a kernel has none of a system's events.
fn absent(system: &str) -> &'static str {
    match system {
        "syscalls" => "the kernel was built without CONFIG_FTRACE_SYSCALLS",
        "block" => "the kernel was built without CONFIG_BLK_DEV_IO_TRACE",
        _ => "not in this kernel, or its module is not loaded",
    }
}

/// In the kernel's words: the row's own, or any device field is any of the devices.
fn filter(row: &Wanted, devices: &[Dev]) -> String {
    if !row.filter.is_empty() {
        return row.filter.into();
    }
    let of_devices = matches!(row.system, "block" | "k2");
    let is_device = |field: &&&str| of_devices && matches!(**field, "dev" | "old_dev");
    let equal = |dev: &Dev, field| format!("{field} == {}", dev.to_kernel());
    let fields = row.fields.iter().filter(is_device);
    let terms = fields.flat_map(|field| devices.iter().map(move |dev| equal(dev, field)));
    terms.collect::<Vec<_>>().join(" || ")
}
