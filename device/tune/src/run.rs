// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures the candidates that the search selects, on a device. Afterwards it restores the knobs
//! or sets the chosen ones. `steady tune` calls it.

use std::collections::BTreeMap;
use std::path::Path;

use steadyio_bench::record::{PointResult, Record};
use steadyio_bench::run::bench::{self as bench, Bench};
use steadyio_bench::run::error::BenchError;
use steadyio_bench::run::session::Session;
use steadyio_bench::spec::expand::{PlannedVariant, Selection, Spec};
use steadyio_bench::spec::workload::{Class, Ioprio, SWEEP_KNOBS, SpecError, Workload};
use steadyio_core::device::Device;
use steadyio_core::histogram::Histogram;
use steadyio_core::interrupt::Interrupt;
use steadyio_core::knob_guard::GuardError;
use steadyio_core::knobs::Queue;
use steadyio_core::value::Value;

use crate::confidence::{Quantile, interval, samples_needed};
use crate::goal::{Figures, Goal, Wanted};
use crate::knob::Choices;
use crate::report::{Outcome, Report};
use crate::search::{Contradiction, Quantity, Search};

/// The variant without a scheduler, to which relative limits refer.
pub const NONE: &str = "none";

/// The reason why nothing was chosen.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// The module is not loaded, or the device has no schedulers.
    #[error(
        "{disk}: no scheduler k2, offered: {offered} (load the module first: insmod k2.ko, or \
         modprobe k2)"
    )]
    NoK2 { disk: String, offered: String },
    /// The workload is not suitable.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// No real-time I/O was completed.
    #[error("{variant}: no real-time I/O was completed, so its latency is unknown")]
    NoSamples { variant: String },
    /// A signal came between two measurements.
    #[error("interrupted")]
    Interrupted,
    #[error(transparent)]
    Bench(#[from] BenchError),
}

impl TuneError {
    /// Whether a signal ended it.
    pub fn interrupted(&self) -> bool {
        match self {
            TuneError::Interrupted => true,
            TuneError::Bench(error) => error.interrupted(),
            _ => false,
        }
    }
}

/// The knobs, the goal, the workload and the device.
#[derive(Debug)]
pub struct Tune<'a> {
    pub spec: &'a Spec,
    /// The value of the sweep, as written, if the spec has one.
    pub point: Option<&'a str>,
    pub device: &'a Device,
    pub choices: &'a Choices,
    pub wanted: Wanted,
    pub quantile: Quantile,
    /// A candidate within this percentage of the best counts as equal.
    pub near_percent: f64,
    /// The knobs that all measurements have; those of the scheduler only with k2.
    pub with: &'a BTreeMap<String, Value>,
    /// Whether to measure all candidates.
    pub all: bool,
    /// Whether to set the chosen knobs.
    pub apply: bool,
    /// The kernel name of the device whose data may be overwritten.
    pub destroy_data: Option<&'a str>,
    /// The directory in which fio's files stay for inspection; None deletes them.
    pub keep: Option<&'a Path>,
    /// Ends the run early.
    pub stop: &'a Interrupt,
}

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

/// The result of one measurement.
#[derive(Debug, Clone)]
pub struct Sample {
    pub figures: Figures,
    /// The number of real-time I/Os for its quantile.
    pub samples: u64,
    /// The number of failed I/Os.
    pub errors: u64,
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

    /// Like [`Tune::check`], without the checks at the start of a bench. Returns the workload, with
    /// one variant without a scheduler first, and one per candidate.
    pub fn plan(&self) -> Result<(Spec, Selection), TuneError> {
        let selection = Selection { points: self.selected_point()?, ..Selection::default() };
        let workload = self.workload_at(&selection)?;
        if workload.jobs_of(Class::Rt).next().is_none() {
            let text = "no job of class \"rt\": the knobs are chosen for its latency";
            return Err(SpecError(text.into()).into());
        }
        let spec = self.spec.with_variants(&self.variants())?;
        self.check_k2()?;
        Ok((spec, selection))
    }

    /// The reasons why the result falls short of the request, for a checked workload.
    pub fn warnings(&self) -> Vec<String> {
        let points = self.selected_point().unwrap_or_default();
        let workload = self.workload_at(&Selection { points, ..Selection::default() });
        let rt_warnings = workload.map(|workload| self.rt_warnings(&workload)).unwrap_or_default();
        rt_warnings.into_iter().chain(self.knob_warning()).collect()
    }

    fn rt_warnings(&self, workload: &Workload) -> Vec<String> {
        let rt: Vec<_> = workload.jobs_of(Class::Rt).collect();
        let needed = samples_needed(self.quantile);
        let mut warnings = Vec::new();
        if let (Some(ios), [_]) = (workload.length.ios.filter(|&ios| ios < needed), &rt[..]) {
            warnings.push(format!(
                "length.ios = {ios}: the {} needs {needed} samples (--set length.ios={needed})",
                self.quantile
            ));
        }
        for job in rt.iter().filter(|job| !matches!(job.ioprio, Ioprio::RealTime(_))) {
            warnings.push(format!(
                "job {}: its ioprio is not \"rt/0\" to \"rt/7\": to k2 it is background",
                job.name
            ));
        }
        warnings
    }

    /// A warning, because with look-ahead on, that decides how much of the background is in flight.
    fn knob_warning(&self) -> Option<String> {
        let is_given = |name: &str| {
            self.choices.all.iter().any(|choice| choice.knob.name == name)
                || self.with.contains_key(&format!("iosched/{name}"))
        };
        let is_alone =
            is_given("inflight_max") && !is_given("split_kib") && !is_given("rt_block_us");
        is_alone.then(|| {
            "inflight_max has little effect while k2 looks ahead, which is the default (--knob \
             rt_block_us=0 switches that off)"
                .into()
        })
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

    /// All settings for a candidate.
    pub fn settings(&self, candidate: usize) -> BTreeMap<String, Value> {
        let mut knobs = self.choices.at(candidate).knobs();
        knobs.extend(self.with.clone());
        knobs
    }

    fn selected_point(&self) -> Result<Vec<String>, SpecError> {
        let sweep = self.spec.workload.sweep.as_ref().filter(|sweep| sweep.key != SWEEP_KNOBS);
        match (sweep, self.point) {
            (_, Some(point)) => Ok(vec![point.to_string()]),
            (Some(sweep), None) if sweep.values.len() > 1 => {
                let values: Vec<String> = sweep.values.iter().map(Value::to_string).collect();
                Err(SpecError(format!(
                    "it has a sweep over {}: choose one load with --point: {}",
                    sweep.key,
                    values.join(", ")
                )))
            }
            _ => Ok(Vec::new()),
        }
    }

    fn workload_at(&self, selection: &Selection) -> Result<Workload, SpecError> {
        let spec = self.spec.with_variants(&[(NONE.into(), BTreeMap::new())])?;
        let chosen =
            spec.points().into_iter().find(|value| match (value, selection.points.first()) {
                (Some(value), Some(point)) => value.to_string() == *point,
                _ => true,
            });
        spec.at(chosen.flatten().as_ref())
    }

    fn variants(&self) -> Vec<(String, BTreeMap<String, Value>)> {
        let mut without: BTreeMap<String, Value> = self
            .with
            .iter()
            .filter(|(key, _)| !key.starts_with("iosched/"))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        without.insert("scheduler".into(), Value::Word(NONE.into()));
        let candidates = (0..self.choices.grid.candidates())
            .map(|candidate| (self.choices.at(candidate).variant_name(), self.settings(candidate)));
        [(NONE.to_string(), without)].into_iter().chain(candidates).collect()
    }

    fn bench<'b>(&'b self, spec: &'b Spec, selection: &'b Selection) -> Bench<'b> {
        Bench {
            spec,
            selection,
            device: self.device,
            destroy_data: self.destroy_data,
            keep: self.keep,
            stop: self.stop,
        }
    }

    fn check_k2(&self) -> Result<(), TuneError> {
        let offered = Queue::new(&self.device.queue, &self.device.disk).schedulers();
        let offered = offered.unwrap_or_default();
        if offered.iter().any(|name| name == "k2") {
            return Ok(());
        }
        let disk = self.device.disk.clone();
        let offered = if offered.is_empty() { "none at all".into() } else { offered.join(", ") };
        Err(TuneError::NoK2 { disk, offered })
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
