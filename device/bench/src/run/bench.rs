// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a bench runs on which device, and the measurement of one group of its points.

use crate::arrivals::load::{ArrivalsLoad, task_of};
use crate::fio::job::{JobFile, job_name};
use crate::fio::output::JobOutput;
use crate::fio::process::Fio;
use crate::host::load::HostLoad;
use crate::record::Record;
use crate::record::point::point_result;
use crate::run::chardisk::OnChardisk;
use crate::run::error::BenchError;
use crate::run::prepared::Prepared;
use crate::run::safety::{self, Claim, SafetyError};
use crate::spec::expand::{KnobGroup, PlannedPoint, PlannedVariant, Selection, Spec};
use crate::spec::workload::{Job, Workload};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use steadyio_core::blocked::Blocked;
use steadyio_core::declared::Declared;
use steadyio_core::device::Device;
use steadyio_core::interrupt::Interrupt;
use steadyio_core::knob_guard::KnobGuard;
use steadyio_core::knobs::{Queue, Unmet};
use steadyio_core::kworkers::{Raised, Threads};

#[derive(Debug)]
pub struct Bench<'a> {
    pub spec: &'a Spec,
    /// The part to run.
    pub selection: &'a Selection,
    pub device: &'a Device,
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
    /// A message for the user.
    Note(String),
    /// A group of points starts.
    Start {
        /// The variant of the group.
        variant: &'a str,
        points: usize,
    },
    /// The group is still running.
    Running {
        /// The variant of the group.
        variant: &'a str,
        /// The time since its start.
        elapsed: Duration,
    },
}

impl Bench<'_> {
    /// If the workload writes, checks that the device may be written to. The claim is held
    /// meanwhile.
    pub(super) fn allow(&self) -> Result<Option<Claim>, SafetyError> {
        let workload = &self.spec.workload;
        if workload.filesystem.is_some() {
            return safety::allow_formatting(self.device, self.destroy_data).map(|()| None);
        }
        if workload.writes() {
            safety::allow_writes(self.device, self.destroy_data).map(Some)
        } else {
            Ok(None)
        }
    }

    pub(super) fn run_group(
        &self,
        fio: Option<&Fio>,
        guard: Option<&KnobGuard>,
        variant: &PlannedVariant,
        group: &KnobGroup,
        record: &mut Record,
        event: &mut dyn FnMut(Event),
    ) -> Result<(), BenchError> {
        if let Some(guard) = guard {
            guard.reset()?;
        }
        if !variant.chardisk {
            return self.measure_with_knobs(fio, variant, group, record, event);
        }
        let failed = |error| BenchError::Chardisk { variant: variant.name.clone(), error };
        let on = OnChardisk::take(self.device).map_err(failed)?;
        let bench = Bench { device: &on.device, ..*self };
        bench.measure_with_knobs(fio, variant, group, record, event)?;
        on.give().map_err(failed)
    }

    fn measure_with_knobs(
        &self,
        fio: Option<&Fio>,
        variant: &PlannedVariant,
        group: &KnobGroup,
        record: &mut Record,
        event: &mut dyn FnMut(Event),
    ) -> Result<(), BenchError> {
        let queue = Queue::new(&self.device.queue, &self.device.disk);
        let (readings, unmet) = queue
            .apply(&variant.name, &group.knobs, &variant.optional)
            .map_err(|error| BenchError::Knob { variant: variant.name.clone(), error })?;
        add_new(&mut record.unmet, unmet);
        event(Event::Start { variant: &variant.name, points: group.points.len() });
        let blocked_before = blocked(&queue);
        let outputs = self.run_raised(fio, variant, group, event)?;
        let in_force = queue.in_force();
        for point in &group.points {
            let jobs = self.outputs_of(variant, point, &outputs)?;
            let mut result =
                point_result(&variant.name, point, readings.clone(), in_force.clone(), &jobs);
            if point.has_arrivals() {
                result.blocked = blocked_since(&queue, blocked_before);
            }
            record.results.push(result);
        }
        Ok(())
    }

    /// Runs a group's points, with the priority of the kernel's workers raised if the variant asks
    /// for it. New workers may appear meanwhile. If one cannot be raised, the group's results are
    /// invalid.
    fn run_raised(
        &self,
        fio: Option<&Fio>,
        variant: &PlannedVariant,
        group: &KnobGroup,
        event: &mut dyn FnMut(Event),
    ) -> Result<Outputs, BenchError> {
        let failed = |source| BenchError::Kworkers { variant: variant.name.clone(), source };
        // 1 to 99, as checked.
        let mut raised = match variant.kworkers_fifo {
            Some(priority) => {
                let threads = Threads::of(Path::new("/sys"), &self.device.disk);
                Some(Raised::new(threads, priority as u8).map_err(failed)?)
            }
            None => None,
        };
        let mut refused = None;
        let event = &mut |happened: Event| {
            if let Some(Err(error)) = raised.as_mut().map(Raised::raise_new) {
                refused = Some(error);
            }
            event(happened);
        };
        let outputs = match fio {
            Some(fio) => self.run_fio(fio, variant, group, event)?,
            None => self.run_threads(variant, group, event)?,
        };
        refused.map_or(Ok(outputs), |error| Err(failed(error)))
    }

    fn run_threads(
        &self,
        variant: &PlannedVariant,
        group: &KnobGroup,
        event: &mut dyn FnMut(Event),
    ) -> Result<Outputs, BenchError> {
        let Workload { seed, settle_ms, .. } = self.spec.workload;
        let load = HostLoad { device: self.device, settle_ms, seed, stop: self.stop };
        let mut tick = |elapsed| event(Event::Running { variant: variant.name.as_str(), elapsed });
        Ok(load.run(&group.points, &mut tick)?)
    }

    fn run_fio(
        &self,
        fio: &Fio,
        variant: &PlannedVariant,
        group: &KnobGroup,
        event: &mut dyn FnMut(Event),
    ) -> Result<Outputs, BenchError> {
        let what = "a directory for fio's files".to_string();
        let temporary = tempfile::Builder::new()
            .prefix("steady-")
            .tempdir()
            .map_err(|source| BenchError::Io { what, source })?;
        let dir = self.keep_dir(variant, group)?.unwrap_or_else(|| temporary.path().to_path_buf());
        let workload = &self.spec.workload;
        let prepared = match &workload.filesystem {
            Some(filesystem) => {
                event(Event::Note(format!("{}: making a file system", self.device.name)));
                Some(Prepared::new(self.device, filesystem, &variant.filesystem, &group.points)?)
            }
            None => None,
        };
        let mounted = prepared.as_ref().map(|prepared| prepared.mounted.path.as_path());
        let job_file = JobFile {
            device: self.device,
            mount: mounted,
            settle_ms: workload.settle_ms,
            seed: workload.seed,
            dir: &dir,
        };
        let (text, logs) = job_file.render(&group.points);
        for log in logs {
            let what = "a list of think times".to_string();
            log.write().map_err(|source| BenchError::Io { what, source })?;
        }
        let mut tick = |elapsed| event(Event::Running { variant: variant.name.as_str(), elapsed });
        let outputs = match &group.points[..] {
            [point] if point.has_arrivals() => {
                let _declared = self.declare(variant, point)?;
                self.run_arrivals(fio, (&text, &job_file), point, &mut tick)?
            }
            _ => fio.run(&text, &dir, self.stop, &mut tick)?,
        };
        prepared.map_or(Ok(()), Prepared::finish)?;
        Ok(outputs)
    }

    /// Declares the point's periodic real-time jobs, which are threads of this process, until the
    /// result is dropped.
    fn declare(
        &self,
        variant: &PlannedVariant,
        point: &PlannedPoint,
    ) -> Result<Option<Declared>, BenchError> {
        if variant.declare_block_us == 0 {
            return Ok(None);
        }
        let failed = |error| BenchError::Declare { variant: variant.name.clone(), error };
        let mut declared = Declared::open().map_err(failed)?;
        for task in point.jobs.iter().filter_map(|job| task_of(job, variant.declare_block_us)) {
            declared.add(self.device, &task).map_err(failed)?;
        }
        Ok(Some(declared))
    }

    /// Runs a point's jobs with arrivals, while fio runs its other jobs.
    fn run_arrivals(
        &self,
        fio: &Fio,
        (text, job_file): (&str, &JobFile),
        point: &PlannedPoint,
        tick: &mut dyn FnMut(Duration),
    ) -> Result<Outputs, BenchError> {
        let started = Instant::now();
        let seed = self.spec.workload.seed;
        let target = |job: &Job| job_file.target(job);
        let load = ArrivalsLoad::open(point, seed, &target, self.stop)?;
        if point.jobs.iter().all(|job| job.arrivals.is_some()) {
            thread::sleep(Duration::from_millis(job_file.settle_ms));
            return load.run(&mut || {
                tick(started.elapsed());
                Ok(())
            });
        }
        let mut fio = fio.start(text, job_file.dir)?;
        fio.wait_until_started(self.stop)?;
        let mut outputs = load.run::<BenchError>(&mut || {
            tick(started.elapsed());
            Ok(fio.check_goes_on(self.stop)?)
        })?;
        outputs.extend(fio.finish()?);
        Ok(outputs)
    }

    fn keep_dir(
        &self,
        variant: &PlannedVariant,
        group: &KnobGroup,
    ) -> Result<Option<PathBuf>, BenchError> {
        let Some(keep) = self.keep else { return Ok(None) };
        let first = group.points.first().map(|point| point.index).unwrap_or_default();
        let dir = keep.join(format!("{}.{first}", variant.name));
        let absolute = fs::create_dir_all(&dir).and_then(|()| fs::canonicalize(&dir));
        let what = dir.display().to_string();
        absolute.map(Some).map_err(|source| BenchError::Io { what, source })
    }

    /// The results of a point's jobs; an error if a job did not reach its goal.
    fn outputs_of<'j>(
        &self,
        variant: &PlannedVariant,
        point: &'j PlannedPoint,
        outputs: &Outputs,
    ) -> Result<Vec<(&'j Job, JobOutput)>, BenchError> {
        let mut jobs = Vec::new();
        for (index, job) in point.jobs.iter().enumerate() {
            let name = job_name(point, job);
            let output = outputs.get(&name).cloned().unwrap_or_default();
            let wanted = if point.main_job() == Some(index) {
                point.length.ios.unwrap_or_default()
            } else {
                0
            };
            if let Some(reason) = shortfall(&output, wanted) {
                let variant = variant.name.clone();
                return Err(BenchError::Point { variant, job: name, reason });
            }
            jobs.push((job, output));
        }
        Ok(jobs)
    }
}

fn blocked(queue: &Queue) -> Option<Blocked> {
    Blocked::parse(&queue.read("iosched/rt_blocked").ok()?)
}

/// The blocked time since `before`; None if the longest wait may have been before.
fn blocked_since(queue: &Queue, before: Option<Blocked>) -> Option<Blocked> {
    before.filter(|before| before.count == 0).and_then(|_| blocked(queue))
}

/// The goal that a job missed, if any. Failed I/Os are counted, and do not matter here.
fn shortfall(output: &JobOutput, wanted: u64) -> Option<String> {
    let (count, errors, fatal) = (output.count, output.errors, output.fatal);
    if count + errors < wanted {
        return Some(format!(
            "ended after {count} of {wanted} I/Os, {errors} of them failed (errno {fatal})"
        ));
    }
    (fatal != 0 && errors == 0).then(|| format!("ended by errno {fatal}"))
}

/// Adds unmet knobs. A knob unmet at one point is unmet at all, and is listed once.
fn add_new(all: &mut Vec<Unmet>, unmet: Vec<Unmet>) {
    for new in unmet {
        if !all.contains(&new) {
            all.push(new);
        }
    }
}

/// Results by fio's job name.
type Outputs = BTreeMap<String, JobOutput>;
