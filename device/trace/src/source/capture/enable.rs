// SPDX-License-Identifier: MIT OR Apache-2.0
//! Enables the needed events in an instance, as far as this kernel has them, and reads their
//! formats. `Capture::start` calls it.

use std::io;

use serde::{Deserialize, Serialize};

use super::options::Options;
use crate::event::Dev;
use crate::source::decode::Decoder;
use crate::source::format::Format;
use crate::source::table::{Detail, Need, Wanted, wanted};
use crate::source::tracefs::Instance;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnabledEvent {
    /// The folder of the event's system under `events`.
    pub system: String,
    /// The event's folder in that of its system.
    pub name: String,
    /// The kernel's filter expression; empty for all events.
    pub filter: String,
    /// Whether the event is traced only in the context of the requested threads.
    #[serde(default)]
    pub of_threads: bool,
    /// The text of the event's `format`.
    #[serde(skip)]
    pub format: String,
}

/// A needed event that this kernel lacks, or has in a form that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreadable {
    /// The name, as `system:name`.
    pub event: String,
    pub why: String,
}

/// The enabled events, and those that could not be enabled.
pub type Enabled = (Vec<EnabledEvent>, Vec<Unreadable>);

/// Enables all needed events, and returns those that could not be enabled. Unless all threads were
/// requested, events of threads are enabled in the instance of the requested threads. All others
/// are enabled in the first instance. `devices` filter block events, if there are any.
pub(super) fn enable(
    (all, of_threads): (&Instance, Option<&Instance>),
    options: &Options,
    devices: &[Dev],
) -> io::Result<Enabled> {
    let (mut events, mut unavailable) = (Vec::new(), Vec::new());
    let is_needed = |need| match need {
        Need::Summary => true,
        Need::Fine => options.detail == Detail::Fine,
        // These events cost little for a few threads, and show the reasons of their waits.
        Need::Threads => options.sched || of_threads.is_some(),
        Need::Metadata => options.metadata,
        Need::Files => false,
    };
    for row in wanted().iter().filter(|row| is_needed(row.need)) {
        // Switches show which threads run on a CPU only if those of all threads are traced.
        let of_all = !row.is_of_thread() || options.sched && row.system == "sched";
        let of_threads = of_threads.filter(|_| !of_all);
        match enable_one(of_threads.unwrap_or(all), row, devices)? {
            Ok(event) => events.push(EnabledEvent { of_threads: of_threads.is_some(), ..event }),
            // A missing system gives one line, not one per event.
            Err(missing) if unavailable.last() == Some(&missing) => {}
            Err(missing) => unavailable.push(missing),
        }
    }
    if events.iter().all(|event| event.system != "block") {
        let why = "the kernel has no block events: it needs CONFIG_BLK_DEV_IO_TRACE";
        return Err(io::Error::other(why));
    }
    Ok((events, unavailable))
}

/// Enables one event. The error says why it cannot.
fn enable_one(
    instance: &Instance,
    row: &'static Wanted,
    devices: &[Dev],
) -> io::Result<Result<EnabledEvent, Unreadable>> {
    let system = row.system;
    let exists = |folder: &str| instance.path(&format!("events/{folder}")).exists();
    let missing = |name: &str, why| Ok(Err(Unreadable { event: format!("{system}:{name}"), why }));
    if !exists(system) {
        let why = match system {
            "syscalls" => "the kernel was built without CONFIG_FTRACE_SYSCALLS",
            "block" => "the kernel was built without CONFIG_BLK_DEV_IO_TRACE",
            _ => "not in this kernel, or its module is not loaded",
        };
        return missing("*", why.into());
    }
    let mut names = [Some(row.name.as_str()), row.old_name].into_iter().flatten();
    let Some(name) = names.find(|name| exists(&format!("{system}/{name}"))) else {
        return missing(&row.name, "this kernel does not have it".into());
    };
    let dir = format!("events/{system}/{name}");
    let format = instance.read(&format!("{dir}/format"))?;
    let readable = Format::parse(&format);
    if let Err(why) = readable.and_then(|format| Decoder::default().add(row, &format)) {
        return missing(&row.name, why);
    }
    let filter = filter(row, devices);
    if !filter.is_empty() {
        instance.write(&format!("{dir}/filter"), &filter)?;
    }
    instance.write(&format!("{dir}/enable"), "1")?;
    let (system, name) = (system.into(), name.into());
    Ok(Ok(EnabledEvent { system, name, filter, of_threads: false, format }))
}

/// The kernel's filter: that of the row, or a comparison of the device fields with the devices.
fn filter(row: &Wanted, devices: &[Dev]) -> String {
    if !row.filter.is_empty() || !matches!(row.system, "block" | "k2") {
        return row.filter.into();
    }
    let fields = row.fields.iter().filter(|field| matches!(**field, "dev" | "old_dev"));
    let equal = |dev: &Dev, field| format!("{field} == {}", dev.to_kernel());
    let terms = fields.flat_map(|field| devices.iter().map(move |dev| equal(dev, field)));
    terms.collect::<Vec<_>>().join(" || ")
}
