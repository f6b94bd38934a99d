// SPDX-License-Identifier: MIT OR Apache-2.0
//! Expands a workload file into the list of things to run: variants times sweep points. `run` uses
//! the list.

use std::collections::BTreeMap;

use steadyio_core::value::Value;

use crate::spec::busy::Busy;
use crate::spec::check;
use crate::spec::host::{HOST, Host};
use crate::spec::workload::{
    Class, Command, Job, LENGTH, Length, POINT_PLACEHOLDER, SWEEP_AT, SWEEP_KNOBS, SpecError,
    Workload,
};

/// The most processes that one fio starts. It holds half a MiB for each until it ends, also for
/// those of other points.
const FIO_PROCESSES_MAX: u64 = 512;

/// A workload file, in its checked form and as written.
#[derive(Debug, Clone)]
pub struct Spec {
    /// The file with defaults. A swept key has the value written for its job.
    pub workload: Workload,
    table: toml::Table,
}

/// A value that replaces a written one, so that one file serves several similar workloads.
#[derive(Debug, Clone)]
pub struct Setting {
    /// `JOB.KEY`, `length.KEY` or `host.KEY`. The file must have that key.
    pub key: String,
    pub value: Value,
}

impl std::str::FromStr for Setting {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Setting, SpecError> {
        match text.split_once('=') {
            Some((key, value)) => Ok(Setting { key: key.into(), value: Value::from_text(value) }),
            None => Err(SpecError(format!("\"{text}\": must be KEY=VALUE"))),
        }
    }
}

/// A selection of variants and points. Empty lists select all.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// The names of the variants to run.
    pub variants: Vec<String>,
    /// The values of the points to run, as written on a command line.
    pub points: Vec<String>,
}

/// One point of one variant.
#[derive(Debug, Clone)]
pub struct PlannedPoint {
    /// The position in the whole sweep. Seeds depend on it, so a selection does not change them.
    pub index: usize,
    /// The value of the swept key; None without a sweep.
    pub value: Option<Value>,
    /// The jobs, with the value inserted.
    pub jobs: Vec<Job>,
    /// The condition that ends it.
    pub length: Length,
    /// The software time of each I/O.
    pub host: Option<Host>,
    /// The programs that run during the jobs.
    pub commands: Vec<Command>,
    /// The tasks that compute during the jobs.
    pub busy: Vec<Busy>,
    /// Whether its result has each job separately.
    pub each_job: bool,
}

impl PlannedPoint {
    /// The job whose I/Os `length.ios` counts: the first real-time one, or the first job if there
    /// is none.
    pub fn main_job(&self) -> Option<usize> {
        let first_rt = self.jobs.iter().position(|job| job.class == Class::Rt);
        first_rt.or(self.length.ios.and(Some(0)))
    }

    /// The number of processes of all its jobs.
    fn processes(&self) -> u64 {
        self.jobs.iter().map(|job| job.processes).sum()
    }

    /// Whether some of its jobs have arrivals.
    pub fn has_arrivals(&self) -> bool {
        self.jobs.iter().any(|job| job.arrivals.is_some())
    }
}

/// Points that run one after the other under the same knobs, in one fio. With arrivals, or a file
/// system, which is recreated for each point, it has only one point.
#[derive(Debug, Clone)]
pub struct KnobGroup {
    /// The requested values by key.
    pub knobs: BTreeMap<String, Value>,
    /// The points; at least one.
    pub points: Vec<PlannedPoint>,
}

/// A variant's additions to the file system.
#[derive(Debug, Clone, Default)]
pub struct VariantFilesystem {
    /// Additional arguments of mkfs.
    pub mkfs: Vec<String>,
    /// Additional mount options.
    pub mount: String,
    /// Shell commands that run after the mount.
    pub prepare: String,
}

/// One variant with everything to run for it.
#[derive(Debug, Clone)]
pub struct PlannedVariant {
    /// Name in the workload.
    pub name: String,
    /// Whether the jobs use the card's /dev/chardiskN.
    pub chardisk: bool,
    /// The knobs that may be missing or rejected.
    pub optional: std::collections::BTreeSet<String>,
    /// The SCHED_FIFO priority of the kernel's workers that complete a card's requests.
    pub kworkers_fifo: Option<u64>,
    /// The blocking time of periodic real-time jobs that are declared to k2; 0: they are not
    /// declared.
    pub declare_block_us: u64,
    /// Its additions to the file system.
    pub filesystem: VariantFilesystem,
    /// The groups in running order.
    pub groups: Vec<KnobGroup>,
}

impl Spec {
    /// Parses and checks a whole file, including every sweep point.
    pub fn parse(text: &str) -> Result<Spec, SpecError> {
        Spec::parse_with(text, &[])
    }

    /// Like [`Spec::parse`], with some values replaced. The file must also be valid without them.
    pub fn parse_with(text: &str, settings: &[Setting]) -> Result<Spec, SpecError> {
        let mut workload: Workload =
            toml::from_str(text).map_err(|error| SpecError(error.to_string()))?;
        check::check(&workload)?;
        let mut table: toml::Table =
            text.parse().map_err(|error: toml::de::Error| SpecError(error.to_string()))?;
        for setting in settings {
            let place = (setting.key != SWEEP_KNOBS).then_some(setting.key.as_str());
            if place.and_then(|key| put(&mut table, key, &setting.value)).is_none() {
                return Err(not_set(&mut table, setting));
            }
            let with = |error: String| {
                let text = error.trim_end();
                SpecError(format!("with {} = {}: {text}", setting.key, setting.value))
            };
            workload = table
                .clone()
                .try_into()
                .map_err(|error: toml::de::Error| with(error.to_string()))?;
            check::check(&workload).map_err(|error| with(error.0))?;
        }
        let spec = Spec { workload, table };
        for value in spec.points() {
            spec.at(value.as_ref())?;
        }
        Ok(spec)
    }

    /// The same load with other variants, each with a name and knobs. The file's variants are
    /// dropped, and so is a sweep over knobs.
    pub fn with_variants(
        &self,
        variants: &[(String, BTreeMap<String, Value>)],
    ) -> Result<Spec, SpecError> {
        let mut table = self.table.clone();
        let list = variants.iter().map(|(name, knobs)| variant_table(name, knobs).into());
        table.insert("variant".into(), toml::Value::Array(list.collect()));
        if self.workload.sweep.as_ref().is_some_and(|sweep| sweep.key == SWEEP_KNOBS) {
            table.remove("sweep");
        }
        let parsed = table.clone().try_into();
        let workload: Workload =
            parsed.map_err(|error: toml::de::Error| SpecError(error.to_string()))?;
        check::check(&workload)?;
        Ok(Spec { workload, table })
    }

    /// The file as written, for the record.
    pub fn to_json(&self) -> Result<serde_json::Value, serde_json::Error> {
        serde_json::to_value(&self.table)
    }

    /// All points in order; one None without a sweep.
    pub fn points(&self) -> Vec<Option<Value>> {
        match &self.workload.sweep {
            Some(sweep) => sweep.values.iter().cloned().map(Some).collect(),
            None => vec![None],
        }
    }

    /// The workload at one sweep point.
    pub fn at(&self, point: Option<&Value>) -> Result<Workload, SpecError> {
        let (Some(sweep), Some(value)) = (&self.workload.sweep, point) else {
            return Ok(self.workload.clone());
        };
        let at_point = |error: String| {
            SpecError(format!("at the sweep point {} = {value}: {}", sweep.key, error.trim_end()))
        };
        let mut table = self.table.clone();
        if sweep.key == SWEEP_AT {
            select_at(&mut table, value)
        } else {
            put(&mut table, &sweep.key, value).ok_or_else(|| unknown_key(&sweep.key))?
        }
        let mut workload: Workload =
            table.try_into().map_err(|error: toml::de::Error| at_point(error.to_string()))?;
        workload.sweep = None;
        check::check(&workload).map_err(|error| at_point(error.0))?;
        Ok(workload)
    }

    /// Everything to run, in order: points within variants.
    pub fn plan(&self, selection: &Selection) -> Result<Vec<PlannedVariant>, SpecError> {
        let names: Vec<&str> = self.workload.variant.iter().map(|v| v.name.as_str()).collect();
        check_selected("variant", &selection.variants, &names)?;
        let values: Vec<String> =
            self.points().iter().flatten().map(|value| value.to_string()).collect();
        check_selected("point", &selection.points, &values)?;
        let mut plan = Vec::new();
        for (position, variant) in self.workload.variant.iter().enumerate() {
            if !selected(&selection.variants, &variant.name) {
                continue;
            }
            plan.push(PlannedVariant {
                name: variant.name.clone(),
                chardisk: variant.chardisk,
                optional: variant.optional.clone(),
                kworkers_fifo: variant.kworkers_fifo,
                declare_block_us: variant.declare_block_us,
                filesystem: VariantFilesystem {
                    mkfs: variant.mkfs.clone(),
                    mount: variant.mount.clone(),
                    prepare: variant.prepare.clone(),
                },
                groups: self.groups(position, &selection.points)?,
            });
        }
        Ok(plan)
    }

    fn groups(&self, variant: usize, points: &[String]) -> Result<Vec<KnobGroup>, SpecError> {
        let mut groups: Vec<KnobGroup> = Vec::new();
        for (index, value) in self.points().into_iter().enumerate() {
            if value.as_ref().is_some_and(|value| !selected(points, &value.to_string())) {
                continue;
            }
            let workload = self.at(value.as_ref())?;
            let knobs = workload.variant[variant].knobs.clone();
            let point = PlannedPoint {
                index,
                value,
                jobs: workload.job,
                length: workload.length,
                host: workload.host,
                commands: workload.command,
                busy: workload.busy,
                each_job: workload.each_job,
            };
            let alone = self.workload.filesystem.is_some() || point.has_arrivals();
            match groups.last_mut() {
                Some(last) if last.takes(&knobs, &point) && !alone => last.points.push(point),
                _ => groups.push(KnobGroup { knobs, points: vec![point] }),
            }
        }
        Ok(groups)
    }
}

impl KnobGroup {
    /// Whether a further point can run in the same process.
    fn takes(&self, knobs: &BTreeMap<String, Value>, point: &PlannedPoint) -> bool {
        let processes: u64 = self.points.iter().map(PlannedPoint::processes).sum();
        self.knobs == *knobs
            && !self.points.iter().any(PlannedPoint::has_arrivals)
            && processes + point.processes() <= FIO_PROCESSES_MAX
    }
}

fn selected(chosen: &[String], name: &str) -> bool {
    chosen.is_empty() || chosen.iter().any(|one| one == name)
}

fn check_selected<S: AsRef<str>>(
    what: &str,
    chosen: &[String],
    known: &[S],
) -> Result<(), SpecError> {
    let known: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
    match chosen.iter().find(|one| !known.contains(&one.as_str())) {
        Some(missing) => Err(SpecError(format!(
            "--{what} {missing}: the workload has no such {what}; it has: {}",
            if known.is_empty() { "none".to_string() } else { known.join(", ") }
        ))),
        None => Ok(()),
    }
}

fn toml_value(value: &Value) -> toml::Value {
    match value {
        Value::Number(number) => toml::Value::Integer(*number),
        Value::Word(word) => toml::Value::String(word.clone()),
    }
}

fn variant_table(name: &str, knobs: &BTreeMap<String, Value>) -> toml::Table {
    let knobs: toml::Table =
        knobs.iter().map(|(key, value)| (key.clone(), toml_value(value))).collect();
    toml::Table::from_iter([
        ("name".to_string(), toml::Value::String(name.to_string())),
        ("knobs".to_string(), toml::Value::Table(knobs)),
    ])
}

/// Inserts a value at `key`; None if there is no such place.
fn put(table: &mut toml::Table, key: &str, value: &Value) -> Option<()> {
    let value = toml_value(value);
    let places = match key.split_once('.') {
        None if key == SWEEP_KNOBS => knob_places(table),
        Some((name @ (LENGTH | HOST), key)) => table_places(table, name, key),
        _ => job_places(table, key),
    };
    if places.is_empty() {
        return None;
    }
    for place in places {
        *place = value.clone();
    }
    Some(())
}

/// Removes the jobs, commands and busy tasks that do not run at this point.
fn select_at(table: &mut toml::Table, value: &Value) {
    for list in ["job", "command", "busy"] {
        let Some(items) = table.get_mut(list).and_then(toml::Value::as_array_mut) else { continue };
        items.retain_mut(|item| match item.as_table_mut().and_then(|item| item.remove(SWEEP_AT)) {
            Some(at) => at.as_array().is_some_and(|at| at.iter().any(|one| is(one, value))),
            None => true,
        });
    }
}

fn is(one: &toml::Value, value: &Value) -> bool {
    match value {
        Value::Number(number) => one.as_integer() == Some(*number),
        Value::Word(word) => one.as_str() == Some(word),
    }
}

fn unknown_key(key: &str) -> SpecError {
    if key == SWEEP_KNOBS {
        return SpecError(format!(
            "sweep.key = \"{key}\": no variant has a knob = \"{POINT_PLACEHOLDER}\""
        ));
    }
    SpecError(format!(
        "sweep.key = \"{key}\": must be JOB.KEY, with the name of a job and a key that this job \
         sets, \"{LENGTH}.KEY\" or \"{HOST}.KEY\" with a key that the file has, \"{SWEEP_KNOBS}\" or \
         \"{SWEEP_AT}\""
    ))
}

/// The error for a missing key. It lists the possible ones: the keys of the job or table, or all
/// jobs.
fn not_set(table: &mut toml::Table, setting: &Setting) -> SpecError {
    let Setting { key, value } = setting;
    let owner = key.rsplit_once('.').map_or("", |(owner, _)| owner);
    let name_of = |job: &toml::Table| Some(job.get("name")?.as_str()?.to_string());
    let (what, allowed) = if matches!(owner, LENGTH | HOST) {
        let found = table.get(owner).and_then(toml::Value::as_table);
        ("a key that the file has", found.map(keys).unwrap_or_default())
    } else if let Some(job) =
        tables(table, "job").find(|job| name_of(job).as_deref() == Some(owner))
    {
        ("a key that this job sets", keys(job))
    } else {
        let jobs = tables(table, "job").filter_map(|job| name_of(job)).collect();
        ("JOB.KEY, \"length.KEY\" or \"host.KEY\", where JOB is one of", jobs)
    };
    let allowed = if allowed.is_empty() { "none".into() } else { allowed.join(", ") };
    SpecError(format!("cannot set \"{key}\" to {value}: must be {what}: {allowed}"))
}

/// The keys, except those that identify the job.
fn keys(table: &toml::Table) -> Vec<String> {
    table.keys().filter(|key| !matches!(&***key, "name" | "class")).cloned().collect()
}

fn tables<'a>(table: &'a mut toml::Table, key: &str) -> impl Iterator<Item = &'a mut toml::Table> {
    let list = table.get_mut(key).and_then(toml::Value::as_array_mut);
    list.into_iter().flatten().filter_map(toml::Value::as_table_mut)
}

fn job_places<'a>(table: &'a mut toml::Table, key: &str) -> Vec<&'a mut toml::Value> {
    let Some((name, key)) = key.rsplit_once('.') else { return Vec::new() };
    // The name and the class identify the job; they are the same at all points.
    if matches!(key, "name" | "class") {
        return Vec::new();
    }
    tables(table, "job")
        .filter(|job| job.get("name").and_then(toml::Value::as_str) == Some(name))
        .filter_map(|job| job.get_mut(key))
        .collect()
}

fn table_places<'a>(table: &'a mut toml::Table, name: &str, key: &str) -> Vec<&'a mut toml::Value> {
    let found = table.get_mut(name).and_then(toml::Value::as_table_mut);
    found.and_then(|found| found.get_mut(key)).into_iter().collect()
}

fn knob_places(table: &mut toml::Table) -> Vec<&mut toml::Value> {
    tables(table, "variant")
        .filter_map(|variant| variant.get_mut("knobs").and_then(toml::Value::as_table_mut))
        .flat_map(|knobs| knobs.iter_mut().map(|(_, value)| value))
        .filter(|value| value.as_str() == Some(POINT_PLACEHOLDER))
        .collect()
}
