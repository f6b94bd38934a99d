// SPDX-License-Identifier: MIT OR Apache-2.0
//! The request of one `steady tune`, and the workload with a variant per candidate that `run`
//! measures.

use std::collections::BTreeMap;
use std::path::Path;

use steadyio_bench::run::bench::Bench;
use steadyio_bench::run::error::BenchError;
use steadyio_bench::spec::expand::{Selection, Spec};
use steadyio_bench::spec::workload::{Class, Ioprio, SWEEP_KNOBS, SpecError, Workload};
use steadyio_core::device::Device;
use steadyio_core::interrupt::Interrupt;
use steadyio_core::knobs::Queue;
use steadyio_core::value::Value;

use crate::confidence::{Quantile, samples_needed};
use crate::goal::Wanted;
use crate::knob::Choices;

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

impl Tune<'_> {
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

    pub(crate) fn bench<'b>(&'b self, spec: &'b Spec, selection: &'b Selection) -> Bench<'b> {
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
