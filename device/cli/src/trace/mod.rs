// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady trace`: shows in which layer each I/O spends its time.
//!
//! `files` and `live` read or capture events, `reading` follows them, and `steadyio_trace::report`
//! makes the record. `tables` and `words` print it.

mod arguments;
mod devices;
mod files;
pub mod late;
mod live;
mod outputs;
mod reading;
mod tables;
mod threads;
mod words;

use std::collections::BTreeMap;

use steadyio_core::diagnostic;
use steadyio_core::interrupt::Interrupt;
use steadyio_core::kernel::Kernel;
use steadyio_trace::event::Dev;
use steadyio_trace::io::{Trace, is_within};
use steadyio_trace::report::question::Question;
use steadyio_trace::report::record::Record;
use steadyio_trace::report::shown::Shown;
use steadyio_trace::source::capture::devices::{Stack, names};

pub use self::arguments::Arguments;
use self::arguments::Source;
use self::outputs::OutFiles;
use self::reading::{Followed, Reading, options_of};
use crate::exit::{Failure, Status};
use crate::output::print;

pub fn run(arguments: &Arguments) -> Result<Status, Failure> {
    let from = arguments.check().map_err(Failure::with(Status::Usage))?;
    outputs::check(arguments).map_err(Failure::with(Status::Usage))?;
    let stop = Interrupt::on_signals().map_err(Failure::with(Status::Failed))?;
    let files = OutFiles::create(arguments).map_err(Failure::with(Status::Failed))?;
    let Origin { device, names, kernel } =
        Origin::of(arguments, from).map_err(Failure::with(Status::Usage))?;
    let (found, ended) = match from {
        Source::Files => files::read(arguments, &stop)?,
        Source::Kernel => now(arguments, device.as_ref(), &stop)?,
    };
    let Followed { trace, asked_for, problems, skipped } = found;
    if let Some(hint) = device.as_ref().and_then(|of| devices::others(of, &trace, &names)) {
        diagnostic!("steady: --device {}: {hint}", arguments.device.as_deref().unwrap_or_default());
    }
    if let Some(hint) = arguments.cgroup.as_ref().and_then(|path| other_cgroups(path, &trace)) {
        diagnostic!("steady: --cgroup: {hint}");
    }
    let question = Question {
        worst: arguments.worst,
        worst_class: arguments.worst_class(),
        asked_for: asked_for.filter(|_| !arguments.all),
        cgroup: arguments.cgroup.clone(),
        device,
        names,
        kernel,
        problems,
        skipped,
    };
    let shown = Shown::of(&trace, &question);
    let record = Record::new(&shown);
    let printed = print(&if arguments.json {
        record.to_json().map_err(Failure::with(Status::Failed))?
    } else {
        text(&record, arguments.fine)
    });
    // Each of the two even if the other fails.
    files.write(&shown, &record).map_err(Failure::with(Status::Failed))?;
    printed?;
    Ok(match ended {
        Status::Done if record.is_flawed() => Status::Flawed,
        ended => ended,
    })
}

/// The reason why nothing is shown, if no process of the trace is in this cgroup.
fn other_cgroups(path: &str, trace: &Trace) -> Option<String> {
    let known = trace.processes.cgroups();
    match known.len() {
        _ if known.iter().any(|own| is_within(own, path)) => None,
        0 => Some(
            "the trace names no cgroups (trace with steady, or read a folder of --keep)".into(),
        ),
        _ => {
            let known: Vec<&str> = known.into_iter().collect();
            Some(format!("no process was in {path} (known: {})", known.join(", ")))
        }
    }
}

/// The traced machine, as far as known.
struct Origin {
    device: Option<Stack>,
    names: BTreeMap<Dev, String>,
    kernel: Option<Kernel>,
}

impl Origin {
    fn of(arguments: &Arguments, from: Source) -> anyhow::Result<Origin> {
        let device = arguments.device.as_deref();
        let kept = files::kept(arguments)?;
        Ok(match (from, kept) {
            (Source::Files, Some(meta)) => {
                let named = meta.device_names.iter();
                let names: BTreeMap<Dev, String> = named
                    .filter_map(|(dev, name)| Some((Dev::parse(dev)?, name.clone())))
                    .collect();
                Origin {
                    device: device.map(|text| devices::find_named(text, &names)).transpose()?,
                    names,
                    kernel: Some(Kernel { release: meta.kernel, version: meta.kernel_version }),
                }
            }
            (Source::Files, None) => Origin {
                device: device.map(devices::find_number).transpose()?,
                names: BTreeMap::new(),
                kernel: None,
            },
            (Source::Kernel, _) => Origin {
                device: device.map(devices::find).transpose()?,
                names: names(),
                kernel: Some(Kernel::running()),
            },
        })
    }
}

/// Traces this kernel, and follows the captured events.
fn now(
    arguments: &Arguments,
    device: Option<&Stack>,
    stop: &Interrupt,
) -> Result<(Followed, Status), Failure> {
    let (captured, ended) = live::trace(arguments, device, stop)?;
    let mut reading = Reading::new(captured.asked_for(), options_of(&captured));
    // Ctrl-C ended the trace, but must not end the reading too.
    let stop = if stop.requested() { &Interrupt::default() } else { stop };
    let all = reading.take_all(captured.events(), stop);
    Ok((reading.finish(), if all { ended } else { Status::Interrupted }))
}

fn text(record: &Record, fine: bool) -> String {
    words::flaws(record)
        + &tables::tables(record, fine)
        + &words::worst(record)
        + &words::account(record)
}
