// SPDX-License-Identifier: MIT OR Apache-2.0
//! A running bench: the device is claimed, its knobs are saved, and variants run one by one.
//! Dropping it restores the knobs. `steady bench` and `steady tune` use it.

use std::collections::{BTreeMap, BTreeSet};

use steadyio_core::knob_guard::{GuardError, KnobGuard};
use steadyio_core::value::Value;

use crate::fio::process::Fio;
use crate::record::{PointResult, Record};
use crate::run::bench::{Bench, Event};
use crate::run::error::BenchError;
use crate::run::safety::Claim;
use crate::spec::expand::PlannedVariant;

/// The session; [`Bench::start`] makes it.
#[derive(Debug)]
pub struct Session<'a> {
    pub(super) bench: &'a Bench<'a>,
    /// None for a workload without fio.
    pub(super) fio: Option<Fio>,
    /// None if no variant has knobs.
    pub(super) guard: Option<KnobGuard>,
    /// The results so far.
    pub(super) record: Record,
    /// Declared after the guard: the device is claimed until its knobs are restored, except while a
    /// card is a character device, which claims it itself.
    pub(super) claim: Option<Claim>,
}

impl Session<'_> {
    /// Sets the knobs of each variant once, and restores them. An unknown knob, or a value that the
    /// kernel rejects, is an error before anything is measured.
    pub fn try_knobs(&self, variants: &[PlannedVariant]) -> Result<(), BenchError> {
        let Some(guard) = &self.guard else { return Ok(()) };
        for variant in variants.iter().filter(|variant| !variant.chardisk) {
            for group in &variant.groups {
                guard
                    .queue()
                    .apply(&variant.name, &group.knobs, &variant.optional)
                    .map_err(|error| BenchError::Knob { variant: variant.name.clone(), error })?;
            }
        }
        Ok(guard.reset()?)
    }

    /// Runs a variant; returns its points.
    pub fn run(
        &mut self,
        variant: &PlannedVariant,
        event: &mut dyn FnMut(Event),
    ) -> Result<&[PointResult], BenchError> {
        let before = self.record.results.len();
        if variant.chardisk {
            self.claim = None;
        }
        for group in &variant.groups {
            let (fio, guard) = (self.fio.as_ref(), self.guard.as_ref());
            self.bench.run_group(fio, guard, variant, group, &mut self.record, event)?;
        }
        if variant.chardisk {
            self.claim = self.bench.allow()?;
        }
        Ok(&self.record.results[before..])
    }

    /// Restores the knobs. If that fails, the record is still valid.
    pub fn finish(self) -> (Record, Result<(), GuardError>) {
        (self.record, self.guard.map_or(Ok(()), KnobGuard::finish))
    }

    /// Restores the knobs, sets these and leaves them set. If that fails, it restores all, and the
    /// record is still valid.
    pub fn leave(self, knobs: &BTreeMap<String, Value>) -> (Record, Result<(), BenchError>) {
        let set = |guard: KnobGuard| {
            guard.reset()?;
            let applied = guard.queue().apply("", knobs, &BTreeSet::new());
            applied.map_err(|error| BenchError::Knob { variant: "--apply".into(), error })?;
            Ok(guard.leave()?)
        };
        (self.record, self.guard.map_or(Ok(()), set))
    }
}
