// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the selected variants and points of a workload on a device, and returns the record. `steady
//! bench` and `steady tune` call it.
//!
//! A [`mod@bench`] measures the points. [`safety`] decides whether it may write. [`prepared`] makes
//! a [`filesystem`] on request, and starts the programs of [`beside`]. A [`session`] runs one
//! variant at a time, so that the caller can choose the next one after each.

pub mod bench;
pub mod beside;
pub mod chardisk;
pub mod error;
pub mod filesystem;
pub mod prepared;
pub mod readiness;
pub mod safety;
pub mod session;

use std::path::Path;

use steadyio_core::kernel::Kernel;
use steadyio_core::knob_guard::{GuardError, KnobGuard};
use steadyio_core::kworkers::{self, Threads};

use crate::fio::process::Fio;
use crate::record::{RECORD_SCHEMA, Record, Tool};
use crate::run::bench::{Bench, Event};
use crate::run::error::BenchError;
use crate::run::session::Session;
use crate::spec::expand::PlannedVariant;
use crate::spec::workload::SpecError;

impl Bench<'_> {
    /// Does everything except the I/O: claims the device, sets the knobs of each variant and
    /// restores them, and tries each right and program that the workload needs. Returns the plan.
    pub fn check(&self, event: &mut dyn FnMut(Event)) -> Result<Vec<PlannedVariant>, BenchError> {
        let (session, plan) = self.start(event)?;
        readiness::try_all(self, &plan)?;
        for variant in &plan {
            session.try_knobs(std::slice::from_ref(variant))?;
        }
        session.finish().1?;
        Ok(plan)
    }

    /// Checks that need no rights and change nothing. Returns no fio for a workload that does not
    /// need it.
    fn check_plan(&self) -> Result<(Option<Fio>, Vec<PlannedVariant>), BenchError> {
        let plan = self.spec.plan(self.selection)?;
        self.check_sizes(&plan)?;
        self.check_kworkers(&plan)?;
        let fio = match self.spec.workload.host {
            Some(_) => None,
            None => Some(Fio::find()?),
        };
        Ok((fio, plan))
    }

    /// Runs everything, and restores the knobs in every case. If restoring fails, it returns the
    /// error together with the record, which is still valid.
    pub fn run(
        &self,
        event: &mut dyn FnMut(Event),
    ) -> Result<(Record, Result<(), GuardError>), BenchError> {
        let (mut session, plan) = self.start(event)?;
        for variant in &plan {
            session.run(variant, event)?;
        }
        Ok(session.finish())
    }

    /// Checks everything, claims the device and saves its knobs. Returns the session and the plan.
    pub fn start(
        &self,
        event: &mut dyn FnMut(Event),
    ) -> Result<(Session<'_>, Vec<PlannedVariant>), BenchError> {
        let (fio, plan) = self.check_plan()?;
        let claim = self.allow()?;
        let record = self.empty_record(fio.as_ref())?;
        let sets_knobs = plan.iter().flat_map(|v| &v.groups).any(|group| !group.knobs.is_empty());
        let guard = if sets_knobs {
            Some(KnobGuard::take(self.device, &mut |text| event(Event::Note(text)))?)
        } else {
            None
        };
        Ok((Session { bench: self, fio, guard, record, claim }, plan))
    }

    fn check_sizes(&self, plan: &[PlannedVariant]) -> Result<(), SpecError> {
        let (size, unit) = (self.device.size_bytes, self.device.logical_block_bytes());
        if let Some(filesystem) = &self.spec.workload.filesystem {
            if filesystem.mib > size >> 20 {
                return Err(SpecError(format!(
                    "filesystem.mib = {}: must be at most the {} MiB of {}",
                    filesystem.mib,
                    size >> 20,
                    self.device.name
                )));
            }
        }
        let points = plan.iter().flat_map(|variant| &variant.groups).flat_map(|g| &g.points);
        for job in points.flat_map(|point| &point.jobs) {
            let block = job.bs_kib * 1_024;
            if job.offset_mib << 20 >= size {
                return Err(SpecError(format!(
                    "job {}: offset_mib = {}: must be less than the {} MiB of {}",
                    job.name,
                    job.offset_mib,
                    size >> 20,
                    self.device.name
                )));
            }
            let size = job.file.as_ref().map_or(size - (job.offset_mib << 20), |f| f.mib << 20);
            if block > size || block % unit != 0 {
                return Err(SpecError(format!(
                    "job {}: bs_kib = {}: must be a multiple of {}'s block of {unit} bytes and at \
                     most the {} KiB of the device or the job's file",
                    job.name,
                    job.bs_kib,
                    self.device.name,
                    size / 1_024
                )));
            }
        }
        Ok(())
    }

    fn check_kworkers(&self, plan: &[PlannedVariant]) -> Result<(), SpecError> {
        let disk = &self.device.disk;
        let wants = plan.iter().find(|variant| variant.kworkers_fifo.is_some());
        let threads = Threads::of(Path::new("/sys"), disk);
        match wants.filter(|_| !threads.exist().unwrap_or(false)) {
            Some(variant) => Err(SpecError(format!(
                "variant {}: kworkers_fifo: {disk}: {}",
                variant.name,
                kworkers::NONE
            ))),
            None => Ok(()),
        }
    }

    fn empty_record(&self, fio: Option<&Fio>) -> Result<Record, BenchError> {
        let spec = self.spec.to_json().map_err(|error| SpecError(error.to_string()))?;
        Ok(Record {
            schema: RECORD_SCHEMA,
            spec,
            seed: Some(self.spec.workload.seed),
            tool: Tool {
                steady: env!("CARGO_PKG_VERSION"),
                fio: fio.map(|fio| fio.version.clone()),
                sysbench: None,
            },
            kernel: Kernel::running(),
            device: self.device.info(),
            unmet: Vec::new(),
            results: Vec::new(),
        })
    }
}
