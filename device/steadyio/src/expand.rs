// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a workload file to the list of things to run: variants times sweep points.

use std::collections::BTreeMap;

use crate::spec::{Job, POINT_PLACEHOLDER, SWEEP_KNOBS, SpecError, Sweep, Value, Workload};
use crate::spec_check;

/// A workload file: as checked, and as written.
#[derive(Debug, Clone)]
pub struct Spec {
    /// The file with defaults filled in; a swept key has the value written for its job.
    pub workload: Workload,
    table: toml::Table,
}

/// What to leave out; empty lists leave out nothing.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Names of the variants to run.
    pub variants: Vec<String>,
    /// Values of the points to run, as written on a command line.
    pub points: Vec<String>,
}

/// One point of one variant.
#[derive(Debug, Clone)]
pub struct PlannedPoint {
    /// Position in the whole sweep, so that a selection does not change the seeds.
    pub index: usize,
    /// Value of the swept key; None without a sweep.
    pub value: Option<Value>,
    /// Jobs with the value put in.
    pub jobs: Vec<Job>,
}

/// Points that run one after the other under the same knobs, in one fio process.
#[derive(Debug, Clone)]
pub struct KnobGroup {
    /// Wanted values by key.
    pub knobs: BTreeMap<String, Value>,
    /// At least one.
    pub points: Vec<PlannedPoint>,
}

/// One variant with everything to run for it.
#[derive(Debug, Clone)]
pub struct PlannedVariant {
    /// Name in the workload.
    pub name: String,
    /// Knobs that may be missing or refused.
    pub optional: std::collections::BTreeSet<String>,
    /// In running order.
    pub groups: Vec<KnobGroup>,
}

impl Spec {
    /// Parses and checks a whole file, every sweep point included.
    pub fn parse(text: &str) -> Result<Spec, SpecError> {
        let workload: Workload =
            toml::from_str(text).map_err(|error| SpecError(error.to_string()))?;
        spec_check::check(&workload)?;
        let table: toml::Table =
            text.parse().map_err(|error: toml::de::Error| SpecError(error.to_string()))?;
        let spec = Spec { workload, table };
        for value in spec.points() {
            spec.at(value.as_ref())?;
        }
        Ok(spec)
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
        substitute(&mut table, sweep, value)?;
        let mut workload: Workload =
            table.try_into().map_err(|error: toml::de::Error| at_point(error.to_string()))?;
        workload.sweep = None;
        spec_check::check(&workload).map_err(|error| at_point(error.0))?;
        Ok(workload)
    }

    /// Everything to run, in order: variants outside, points inside.
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
                optional: variant.optional.clone(),
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
            let point = PlannedPoint { index, value, jobs: workload.job };
            match groups.last_mut() {
                Some(last) if last.knobs == knobs => last.points.push(point),
                _ => groups.push(KnobGroup { knobs, points: vec![point] }),
            }
        }
        Ok(groups)
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

/// Puts a point's value where `sweep.key` says.
fn substitute(table: &mut toml::Table, sweep: &Sweep, value: &Value) -> Result<(), SpecError> {
    let value = match value {
        Value::Number(number) => toml::Value::Integer(*number),
        Value::Word(word) => toml::Value::String(word.clone()),
    };
    let places =
        if sweep.key == SWEEP_KNOBS { knob_places(table) } else { job_places(table, &sweep.key) };
    if places.is_empty() {
        return Err(SpecError(unknown_key(&sweep.key)));
    }
    for place in places {
        *place = value.clone();
    }
    Ok(())
}

fn unknown_key(key: &str) -> String {
    if key == SWEEP_KNOBS {
        return format!("sweep.key = \"{key}\": no variant has a knob = \"{POINT_PLACEHOLDER}\"");
    }
    format!(
        "sweep.key = \"{key}\": must be JOB.KEY, with the name of a job and a key that this job \
         sets, or \"{SWEEP_KNOBS}\""
    )
}

fn tables<'a>(table: &'a mut toml::Table, key: &str) -> impl Iterator<Item = &'a mut toml::Table> {
    let list = table.get_mut(key).and_then(toml::Value::as_array_mut);
    list.into_iter().flatten().filter_map(toml::Value::as_table_mut)
}

fn job_places<'a>(table: &'a mut toml::Table, key: &str) -> Vec<&'a mut toml::Value> {
    let Some((name, key)) = key.rsplit_once('.') else { return Vec::new() };
    // The name and the class say which job it is; they stay the same for all points.
    if matches!(key, "name" | "class") {
        return Vec::new();
    }
    tables(table, "job")
        .filter(|job| job.get("name").and_then(toml::Value::as_str) == Some(name))
        .filter_map(|job| job.get_mut(key))
        .collect()
}

fn knob_places(table: &mut toml::Table) -> Vec<&mut toml::Value> {
    tables(table, "variant")
        .filter_map(|variant| variant.get_mut("knobs").and_then(toml::Value::as_table_mut))
        .flat_map(|knobs| knobs.iter_mut().map(|(_, value)| value))
        .filter(|value| value.as_str() == Some(POINT_PLACEHOLDER))
        .collect()
}
