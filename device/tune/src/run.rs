// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures the candidates that the search selects, on a device. Afterwards it restores the knobs
//! or sets the chosen ones. `steady tune` calls it.

use std::collections::BTreeMap;

use steadyio_bench::record::{PointResult, Record};
use steadyio_bench::run::bench;
use steadyio_bench::run::error::BenchError;
use steadyio_bench::run::session::Session;
use steadyio_bench::spec::expand::PlannedVariant;
use steadyio_core::histogram::Histogram;
use steadyio_core::knob_guard::GuardError;
use steadyio_core::value::Value;

use crate::confidence::{Quantile, interval};
use crate::goal::{Figures, Goal};
use crate::report::{Outcome, Report};
use crate::search::{Contradiction, Quantity, Search};

pub use crate::plan::{NONE, Tune, TuneError};
pub use crate::report::Sample;

/// A progress event.
#[derive(Debug)]
pub enum Event<'a> {
    Bench(bench::Event<'a>),
    /// A measurement starts.
    Start {
        /// The number, from 1.
        number: usize,
        /// The highest number of further measurements without contradictions; None if it depends on
        /// this one.
        left_max: Option<usize>,
        name: &'a str,
    },
    /// It ended. The goal is known once the limit is.
    Measured {
        name: &'a str,
        sample: &'a Sample,
        goal: Option<&'a Goal>,
    },
    /// Two measurements do not rise as expected; only the first pair per quantity.
    Contradiction(&'a Contradiction),
}

/// The result of restoring or setting the knobs at the end.
pub type Left = Result<(), BenchError>;

impl Tune<'_> {
    /// Does everything except the I/O, and restores the knobs.
    pub fn check(&self, event: &mut dyn FnMut(Event)) -> Result<(), TuneError> {
        let (spec, selection) = self.plan()?;
        self.bench(&spec, &selection).check(&mut |inner| event(Event::Bench(inner)))?;
        Ok(())
    }

    /// Measures, chooses, and restores the knobs or sets the chosen ones. If that last step fails,
    /// it returns the error together with the report, which is still valid.
    pub fn run(&self, event: &mut dyn FnMut(Event)) -> Result<(Report, Left), TuneError> {
        let (spec, selection) = self.plan()?;
        let bench = self.bench(&spec, &selection);
        let (session, plan) = bench.start(&mut |inner| event(Event::Bench(inner)))?;
        session.try_knobs(&plan)?;
        let mut runs = Runs { tune: self, session, plan, number: 0 };
        let none = match self.wanted.needs_none() || self.all {
            true => Some(runs.measure(NONE, None, None, event)?),
            false => None,
        };
        let figures = none.as_ref().map(|none| &none.figures);
        let no_samples = || TuneError::NoSamples { variant: NONE.into() };
        let goal = self.wanted.goal(figures).ok_or_else(no_samples)?;
        let mut search = Search::new(self.choices.grid.clone(), goal, self.near_percent);
        let samples = runs.measure_candidates(&mut search, &goal, event)?;
        let picked = search.pick().map(|candidate| self.settings(candidate));
        let to_apply = picked.filter(|_| self.apply);
        let (record, left) = runs.end(to_apply.as_ref());
        let is_applied = to_apply.is_some() && left.is_ok();
        let outcome = Outcome { search: &search, goal, none: none.as_ref(), samples: &samples };
        Ok((Report::new(self, &outcome, is_applied, record), left))
    }
}

/// The measurements of one run.
struct Runs<'a> {
    tune: &'a Tune<'a>,
    session: Session<'a>,
    plan: Vec<PlannedVariant>,
    number: usize,
}

impl Runs<'_> {
    /// Measures the candidates that the search selects, then the rest if all are requested. Results
    /// are by candidate.
    fn measure_candidates(
        &mut self,
        search: &mut Search,
        goal: &Goal,
        event: &mut dyn FnMut(Event),
    ) -> Result<BTreeMap<usize, Sample>, TuneError> {
        let mut samples = BTreeMap::new();
        let mut known: Vec<Quantity> = Vec::new();
        let candidates = self.tune.choices.grid.candidates();
        loop {
            let rest = || (0..candidates).find(|one| self.tune.all && !samples.contains_key(one));
            let Some(candidate) = rest().or_else(|| search.next()) else { return Ok(samples) };
            let left_max = match self.tune.all {
                true => candidates - samples.len(),
                false => search.left_max(),
            };
            let name = self.tune.choices.at(candidate).variant_name();
            let left_max = Some(left_max.saturating_sub(1));
            let sample = self.measure(&name, left_max, Some(goal), event)?;
            search.add(candidate, sample.figures);
            samples.insert(candidate, sample);
            for found in search.contradictions() {
                if !known.contains(&found.quantity) {
                    event(Event::Contradiction(&found));
                    known.push(found.quantity);
                }
            }
        }
    }

    fn measure(
        &mut self,
        name: &str,
        left_max: Option<usize>,
        goal: Option<&Goal>,
        event: &mut dyn FnMut(Event),
    ) -> Result<Sample, TuneError> {
        if self.tune.stop.requested() {
            return Err(TuneError::Interrupted);
        }
        self.number += 1;
        event(Event::Start { number: self.number, left_max, name });
        let no_samples = || TuneError::NoSamples { variant: name.to_string() };
        let variant = self.plan.iter().find(|one| one.name == name).ok_or_else(no_samples)?;
        let results = self.session.run(variant, &mut |inner| event(Event::Bench(inner)))?;
        let result = results.first();
        let sample =
            result.and_then(|r| sample_of(r, self.tune.quantile)).ok_or_else(no_samples)?;
        event(Event::Measured { name, sample: &sample, goal });
        Ok(sample)
    }

    fn end(self, settings: Option<&BTreeMap<String, Value>>) -> (Record, Left) {
        match settings {
            Some(settings) => self.session.leave(settings),
            None => {
                let (record, restored) = self.session.finish();
                (record, restored.map_err(|error: GuardError| error.into()))
            }
        }
    }
}

/// The figures of a point; None without a real-time latency.
fn sample_of(result: &PointResult, quantile: Quantile) -> Option<Sample> {
    let (rt, total) = (result.classes.get("rt")?, result.classes.get("total")?);
    let extremes = &rt.latency_ns;
    let latency = Histogram::new(rt.histogram_ns.iter().copied(), extremes.min?, extremes.max?);
    let interval = interval(&latency, quantile);
    let figures = Figures {
        tail_ns: quantile.of(&latency)?,
        tail_ns_min: interval.ns_min,
        tail_ns_max: interval.ns_max,
        mib_s: total.mib_s?,
    };
    Some(Sample { figures, samples: latency.count(), errors: total.errors })
}
