// SPDX-License-Identifier: MIT OR Apache-2.0
//! Enabling the wanted events in an instance, as far as this kernel has them.

use std::io;

use serde::{Deserialize, Serialize};

use super::Options;
use crate::event::Dev;
use crate::source::decode::Decoder;
use crate::source::format::Format;
use crate::source::table::{Detail, Need, Wanted, wanted};
use crate::source::tracefs::Instance;

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
    /// The text of its `format`.
    #[serde(skip)]
    pub format: String,
}

/// A wanted event that this kernel does not have, or not in a form that can be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreadable {
    /// As `system:name`.
    pub event: String,
    pub why: String,
}

/// The enabled events, and those that could not be enabled.
pub type Enabled = (Vec<EnabledEvent>, Vec<Unreadable>);

/// Enables all needed events, and returns those that it could not. Events of threads are enabled in
/// the instance of the requested threads, if not all threads are. All others are enabled in the
/// first instance. `devices` filter block events, if there are any.
pub(super) fn enable(
    (all, of_threads): (&Instance, Option<&Instance>),
    options: &Options,
    devices: &[Dev],
) -> io::Result<Enabled> {
    let (mut events, mut unavailable) = (Vec::new(), Vec::new());
    let is_needed = |need| match need {
        Need::Summary => true,
        Need::Fine => options.detail == Detail::Fine,
        // Of few threads it costs little, and says what they wait for.
        Need::Threads => options.sched || of_threads.is_some(),
        Need::Metadata => options.metadata,
        Need::Files => false,
    };
    for row in wanted().iter().filter(|row| is_needed(row.need)) {
        // What switches tell of CPUs, they tell only if they are of all threads.
        let of_all = !row.is_of_thread() || options.sched && row.system == "sched";
        let of_threads = of_threads.filter(|_| !of_all);
        match enable_one(of_threads.unwrap_or(all), row, devices)? {
            Ok(event) => events.push(EnabledEvent { of_threads: of_threads.is_some(), ..event }),
            // One line for all of a system that is not there.
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

/// Enables one event, or says why not.
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

/// In the kernel's words: the row's own, or any device field is any of the devices.
fn filter(row: &Wanted, devices: &[Dev]) -> String {
    if !row.filter.is_empty() || !matches!(row.system, "block" | "k2") {
        return row.filter.into();
    }
    let fields = row.fields.iter().filter(|field| matches!(**field, "dev" | "old_dev"));
    let equal = |dev: &Dev, field| format!("{field} == {}", dev.to_kernel());
    let terms = fields.flat_map(|field| devices.iter().map(move |dev| equal(dev, field)));
    terms.collect::<Vec<_>>().join(" || ")
}
