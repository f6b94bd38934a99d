// SPDX-License-Identifier: MIT OR Apache-2.0
//! A whole recording with a recipe: switches the flusher off, runs the caller and the background,
//! and restores the settings. `steady-recipe` calls it.

use std::io;
use std::sync::mpsc::channel;

use steadyio_core::interrupt::Interrupt;
use steadyio_recorder::pool::making::make_directory;
use steadyio_recorder::source::{Source, now_ns};
use steadyio_recorder::task::process_cpu_ns;

use super::caller_writes::{Files, WriteSink};
use super::flusher::{self, FlusherError, FlusherOff};
use crate::recording::place::{filesystem_of, named};
use crate::recording::recipe::Recipe;
use crate::recording::session::{Beside, Outcome, Plan, SessionError};

/// A recording could not be set up or finished.
#[derive(Debug, thiserror::Error)]
pub enum RecipeError {
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The flusher's settings failed.
    #[error(transparent)]
    Flusher(#[from] FlusherError),
    /// Files or threads failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The recording failed at its end, or before.
    #[error("{why}; {durable} records are durable")]
    Unfinished { durable: u64, why: io::Error },
}

/// Records `total_bytes` of a source. `note` receives messages about settings.
pub fn record(
    recipe: Recipe,
    plan: &Plan,
    total_bytes: u64,
    source: Box<dyn Source + Send>,
    stop: &Interrupt,
    note: &mut dyn FnMut(String),
) -> Result<Outcome, RecipeError> {
    let config = &plan.config;
    make_directory(&config.dir).map_err(|error| named(&config.dir, error))?;
    let guard = if recipe.writes.flusher { None } else { Some(FlusherOff::take(note)?) };
    let files = Files {
        dir: config.dir.clone(),
        file_bytes: config.segment_bytes.min(total_bytes),
        total_bytes,
        sync_bytes: config.unit_bytes,
    };
    let sink = WriteSink::start(recipe.writes, files)?;
    let period_ns = plan.period.as_nanos() as u64;
    let record_bytes = config.channels[0].record_bytes_max;
    let background = sink.background(period_ns, record_bytes).start()?;
    let ledger = sink.ledger();
    let account = || ledger.snapshot();
    let flusher = flusher::in_force();
    let (sender, events) = channel();
    let mut watching = plan.watching(None, note, events, &account, &|| None);
    let (begun, caller, sink) = plan.run_caller(source, sink, stop, &sender, &mut watching)?;
    let background = background.map(|thread| thread.finish()).transpose()?;
    let report = sink.finish().map_err(|why| {
        let durable = ledger.snapshot().durable.records;
        RecipeError::Unfinished { durable, why }
    })?;
    let (cpu_ns, duration_ns) = (process_cpu_ns() - begun.cpu_ns, now_ns() - begun.at_ns);
    if let Some(guard) = guard {
        guard.finish()?;
    }
    Ok(Outcome {
        caller,
        channels: vec![(config.channels[0].topic.clone(), ledger.snapshot())],
        beside: Beside::CallerWrites(recipe, Box::new(report), background.map(Box::new)),
        filesystem: filesystem_of(&config.dir),
        flusher,
        cpu_ns,
        duration_ns,
        process_locked: begun.process_locked,
        too_long: 0,
    })
}
