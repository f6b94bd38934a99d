// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tries everything that a bench needs except the I/O: permissions, knobs, drivers and programs. It
//! restores each. `steady bench --check` and `steady tune --check` call it.

use std::env;
use std::io;
use std::path::Path;
use std::thread;

use rustix::fs::{Mode, OFlags};
use steadyio_core::declared::Declared;
use steadyio_core::kworkers::{Raised, Threads};
use steadyio_core::scheduling::{IO_CLASS_REAL_TIME, set_fifo, set_io_priority};
use steadyio_direct::card::{Card, driver_dir};
use steadyio_direct::taking::{TakeError, check_free};

use crate::run::bench::Bench;
use crate::run::chardisk::ChardiskError;
use crate::run::error::{BenchError, Lacking};
use crate::run::safety::SafetyError;
use crate::spec::expand::PlannedVariant;
use crate::spec::workload::{FilesystemKind, Ioprio};

/// Tries everything that the device and the variants need, except their knobs.
pub fn try_all(bench: &Bench, plan: &[PlannedVariant]) -> Result<(), BenchError> {
    if !bench.spec.workload.writes() {
        open_for_reading(bench)?;
    }
    for variant in plan {
        try_variant(bench, variant)?;
    }
    try_priorities(plan)?;
    try_programs(bench, plan)
}

fn open_for_reading(bench: &Bench) -> Result<(), SafetyError> {
    let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
    rustix::fs::open(&bench.device.node, flags, Mode::empty()).map(drop).map_err(|error| {
        SafetyError::Examine { device: bench.device.name.clone(), source: error.into() }
    })
}

fn try_variant(bench: &Bench, variant: &PlannedVariant) -> Result<(), BenchError> {
    let name = || variant.name.clone();
    if variant.chardisk {
        try_chardisk(bench).map_err(|error| BenchError::Chardisk { variant: name(), error })?;
    }
    if variant.declare_block_us > 0 {
        Declared::open().map_err(|error| BenchError::Declare { variant: name(), error })?;
    }
    if let Some(priority) = variant.kworkers_fifo {
        let threads = Threads::of(Path::new("/sys"), &bench.device.disk);
        let raised = Raised::new(threads, priority as u8);
        raised.map_err(|source| BenchError::Kworkers { variant: name(), source })?;
    }
    Ok(())
}

/// Tries the conditions for taking the card.
fn try_chardisk(bench: &Bench) -> Result<(), ChardiskError> {
    if bench.device.is_partition() {
        return Err(ChardiskError::Partition(bench.device.name.clone()));
    }
    let (sys, proc) = (Path::new("/sys"), Path::new("/proc"));
    let card = Card::find(sys, &bench.device.disk).map_err(TakeError::from)?;
    check_free(sys, proc, &card)?;
    driver_dir(sys).map_err(TakeError::from)?;
    Ok(())
}

/// Tries priorities in a separate thread, whose end restores them.
fn try_priorities(plan: &[PlannedVariant]) -> Result<(), Lacking> {
    let points = plan.iter().flat_map(|variant| &variant.groups).flat_map(|group| &group.points);
    for job in points.flat_map(|point| &point.jobs) {
        let lacking = |what: String| {
            let job = job.name.clone();
            move |source| Lacking::Priority { job, what, source }
        };
        if let Ioprio::RealTime(level) = job.ioprio {
            let what = format!("ioprio = \"rt/{level}\"");
            in_a_thread(move || set_io_priority(IO_CLASS_REAL_TIME, level))
                .map_err(lacking(what))?;
        }
        if let Some(priority) = job.fifo {
            let what = format!("fifo = {priority}");
            in_a_thread(move || set_fifo(priority as u8)).map_err(lacking(what))?;
        }
    }
    Ok(())
}

fn in_a_thread(set: impl FnOnce() -> io::Result<()> + Send + 'static) -> io::Result<()> {
    thread::spawn(set).join().unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
}

fn try_programs(bench: &Bench, plan: &[PlannedVariant]) -> Result<(), BenchError> {
    let mut programs = Vec::new();
    if let Some(filesystem) = &bench.spec.workload.filesystem {
        if !rustix::process::geteuid().is_root() {
            return Err(Lacking::Mount.into());
        }
        programs.push("mount");
        programs.push(match filesystem.kind {
            FilesystemKind::Ext4 => "mkfs.ext4",
            FilesystemKind::F2fs => "mkfs.f2fs",
        });
    }
    let mut points = plan.iter().flat_map(|variant| &variant.groups).flat_map(|g| &g.points);
    if points.any(|point| !point.commands.is_empty()) {
        programs.extend(["ionice", "sh"]);
    }
    let paths = env::var_os("PATH").unwrap_or_default();
    let is_there = |name: &&str| env::split_paths(&paths).any(|dir| dir.join(name).is_file());
    match programs.into_iter().find(|name| !is_there(name)) {
        Some(name) => Err(Lacking::Program(name.into()).into()),
        None => Ok(()),
    }
}
