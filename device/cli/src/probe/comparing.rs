// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady probe --compare`: which times of two profiles differ.

use std::path::Path;

use serde_json::json;
use steadyio_bound::BoundError;
use steadyio_bound::device::Device;
use steadyio_probe::compare::{Comparison, Row, compare};
use steadyio_probe::profile::Profile;

use crate::bound;
use crate::exit::{Failure, Status};
use crate::output::print;
use crate::table::align;

const SCHEMA: &str = "steadyio.compare/1";
const HEAD: [&str; 4] = ["", "old", "new", ""];
const WORDS: [usize; 2] = [0, 3];

pub fn run(old: &Path, new: &Path, json: bool) -> Result<Status, Failure> {
    let [before, after] = [old, new].map(|path| read(path).map_err(Failure::with(Status::Usage)));
    let found = compare(&before?, &after?);
    print(&if json { document(&found) } else { text(&found) })?;
    Ok(if found.differs() { Status::Flawed } else { Status::Done })
}

/// Called by `--verdict`, too.
pub fn read(path: &Path) -> anyhow::Result<Profile> {
    bound::read(path, |text| {
        Device::check_ranges(text)?;
        Profile::parse(text).map_err(BoundError)
    })
}

fn document(found: &Comparison) -> String {
    let document = json!({
        "schema": SCHEMA,
        "tool": { "steady": env!("CARGO_PKG_VERSION") },
        "differs": found.differs(),
        "rows": found.rows,
        "notices": found.notices,
    });
    format!("{document:#}\n")
}

fn cells(row: &Row) -> [String; 4] {
    let cell = |number: Option<u64>| number.map_or("-".into(), |number| number.to_string());
    let word = if row.differs { "differs" } else { "" };
    [row.key.clone(), cell(row.before), cell(row.after), word.into()]
}

fn text(found: &Comparison) -> String {
    let mut rows = vec![HEAD.map(String::from)];
    rows.extend(found.rows.iter().map(cells));
    let differing = found.rows.iter().filter(|row| row.differs).count();
    let notices: String = found.notices.iter().map(|notice| format!("{notice}\n")).collect();
    let verdict = match differing {
        0 => "no time differs by more than a probe is off by\n".to_string(),
        1 => "1 time differs\n".into(),
        many => format!("{many} times differ\n"),
    };
    align(&rows, &WORDS) + &notices + &verdict
}
