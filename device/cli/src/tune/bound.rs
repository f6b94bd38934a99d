// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady tune --bound`: finds the knobs that meet all deadlines and leave most to the background.
//!
//! The search is in `steadyio_bound::search`. This has files, JSON and text.

use std::fs;
use std::path::Path;

use anyhow::Context;
use serde_json::json;
use steadyio_bound::search::{Candidate, Mode, candidates, pick};
use steadyio_bound::tasks::TaskSet;
use toml_edit::{DocumentMut, Item, TableLike, Value, value};

use crate::bench::record_file;
use crate::bound::{Progress, Report, inputs, percent};
use crate::exit::{Failure, Status};
use crate::output::print;
use crate::table::align;

const SCHEMA: &str = "steadyio.tune-bound/1";
/// The text columns.
const WORDS: [usize; 3] = [0, 2, 3];

pub fn run(
    device: &Path,
    tasks: &Path,
    out: Option<&Path>,
    is_json: bool,
) -> Result<Status, Failure> {
    let (profile, set) = inputs(device, tasks, false)?;
    let mut progress = Progress::new();
    let found = candidates(&profile, &set, &mut || progress.next_choice());
    let found = found.map_err(Failure::with(Status::Usage))?;
    let Some(best) = pick(&found) else {
        print(&if is_json { json_text(&found, None) } else { table(&found, None) })?;
        return Ok(Status::Flawed);
    };
    if let Some(out) = out {
        write(tasks, &best.set, out)?;
    }
    let report = Report::of(&profile, &best.set, Vec::new());
    let report = report.map_err(Failure::with(Status::Usage))?;
    print(&if is_json {
        json_text(&found, Some((best, report.document())))
    } else {
        table(&found, Some(best)) + &report.text()
    })?;
    Ok(Status::Done)
}

/// Writes the file of the tasks, including its comments, with these knobs.
fn write(tasks: &Path, set: &TaskSet, out: &Path) -> Result<(), Failure> {
    let file = record_file(out)?;
    let text = fs::read_to_string(tasks).with_context(|| tasks.display().to_string());
    let text = text.and_then(|text| with_knobs(&text, set));
    let text = text.map_err(Failure::with(Status::Failed))?;
    file.finish(&text).context("--out").map_err(Failure::with(Status::Failed))
}

fn with_knobs(text: &str, set: &TaskSet) -> anyhow::Result<String> {
    let mut file: DocumentMut = text.parse()?;
    let k2 = file["k2"].as_table_like_mut().context("[k2] is no table")?;
    for (name, number) in [("split_kib", set.k2.split_kib()), ("rt_block_us", set.k2.rt_block_us)] {
        k2.insert(name, value(i64::try_from(number)?));
    }
    let tables: Vec<&mut dyn TableLike> = match &mut file["task"] {
        Item::ArrayOfTables(tables) => tables.iter_mut().map(|table| table as _).collect(),
        Item::Value(Value::Array(tables)) => {
            let tables = tables.iter_mut().filter_map(Value::as_inline_table_mut);
            tables.map(|table| table as _).collect()
        }
        _ => Vec::new(),
    };
    for (table, task) in tables.into_iter().zip(&set.tasks) {
        match task.block_us.filter(|us| *us != set.k2.rt_block_us) {
            Some(us) => table.insert("block_us", value(i64::try_from(us)?)),
            None => table.remove("block_us"),
        };
    }
    Ok(file.to_string())
}

pub fn knobs(candidate: &Candidate) -> String {
    let set = &candidate.set;
    match candidate.mode {
        Mode::Whole => "nothing is cut".into(),
        Mode::Split => format!("split_kib = {}", set.k2.split_kib()),
        Mode::Declared => {
            let each =
                set.tasks.iter().map(|task| format!("{} {}", task.name, task.block_us(&set.k2)));
            format!("block_us: {}", each.collect::<Vec<_>>().join(", "))
        }
    }
}

fn table(found: &[Candidate], best: Option<&Candidate>) -> String {
    let head = ["knobs", "background", "deadlines", ""];
    let mut rows = vec![head.map(String::from).to_vec()];
    rows.extend(found.iter().map(|candidate| {
        let deadlines = match candidate.missed {
            0 => "all met".into(),
            missed => format!("{missed} of {} may be missed", candidate.set.tasks.len()),
        };
        let is_best = best.is_some_and(|best| best.mode == candidate.mode);
        let mark = if is_best { "pick" } else { "" };
        vec![knobs(candidate), percent(1.0 - candidate.loss), deadlines, mark.into()]
    }));
    let verdict = if best.is_none() { "no knobs meet all deadlines\n" } else { "" };
    align(&rows, &WORDS) + verdict
}

fn json_text(found: &[Candidate], best: Option<(&Candidate, serde_json::Value)>) -> String {
    let candidate = |candidate: &Candidate| {
        let k2 = &candidate.set.k2;
        let tasks = candidate.set.tasks.iter();
        let block_us = tasks.map(|task| (k2.rt_block_us > 0).then(|| task.block_us(k2)));
        json!({
            "split_kib": k2.split_kib(),
            "rt_block_us": k2.rt_block_us,
            "block_us": block_us.collect::<Vec<_>>(),
            "tasks_missed": candidate.missed,
            "background_loss": candidate.loss,
        })
    };
    let pick =
        best.as_ref().and_then(|(best, _)| found.iter().position(|one| one.mode == best.mode));
    let document = json!({
        "schema": SCHEMA,
        "tool": { "steady": env!("CARGO_PKG_VERSION") },
        "candidates": found.iter().map(candidate).collect::<Vec<_>>(),
        "pick": pick,
        "bound": best.map(|(_, bound)| bound),
    });
    format!("{document:#}\n")
}
