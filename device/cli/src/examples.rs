// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady examples`: lists and prints workloads, task sets and device profiles that packages
//! install.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use serde_json::json;

use crate::exit::{Failure, Status};
use crate::output::print;
use crate::table::align;

const SCHEMA: &str = "steadyio.examples/1";
/// The folder below that of shared files.
const FOLDER: &str = "steadyio/examples";
const SHARE: &str = "/usr/share";
/// The kinds, with the commands that read them, in the order of the list.
const KINDS: [(&str, &str); 3] =
    [("workloads", "bench, tune"), ("tasks", "bound, apply"), ("devices", "bound, apply")];

const HELP: &str = "Exit status: 0 success; 1 no examples are installed; 2 usage error or unknown \
NAME.";

/// List the example workloads, tasks and device profiles, or print one
///
/// For example: steady examples robot >tasks.toml
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Arguments {
    /// Example to print [default: list them]
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Print the list as JSON instead of a table (docs/spec/examples-1.schema.json)
    #[arg(long, conflicts_with = "name")]
    json: bool,
    /// Directory of the examples [default: share/steadyio/examples next to this program, else in
    /// /usr]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

struct Example {
    name: String,
    kind: &'static str,
    used_by: &'static str,
    title: String,
    file: PathBuf,
}

pub fn run(arguments: &Arguments) -> Result<Status, Failure> {
    let folder = arguments.dir.clone().unwrap_or_else(installed);
    let found = examples(&folder).map_err(Failure::with(Status::Failed))?;
    match &arguments.name {
        Some(name) => print(&text_of(&found, name).map_err(Failure::with(Status::Usage))?)?,
        None if arguments.json => print(&format!("{:#}\n", document(&found)))?,
        None => print(&table(&found))?,
    }
    Ok(Status::Done)
}

/// `PREFIX/share` for a program in `PREFIX/bin`.
fn installed() -> PathBuf {
    let program = env::current_exe().ok();
    let prefix = program.as_deref().and_then(Path::parent).and_then(Path::parent);
    let own = prefix.map(|prefix| prefix.join("share").join(FOLDER));
    own.filter(|own| own.is_dir()).unwrap_or_else(|| Path::new(SHARE).join(FOLDER))
}

fn examples(folder: &Path) -> anyhow::Result<Vec<Example>> {
    let mut found = Vec::new();
    for (kind, used_by) in KINDS {
        for entry in fs::read_dir(folder.join(kind)).into_iter().flatten() {
            let file = entry?.path();
            if file.extension().is_none_or(|extension| extension != "toml") {
                continue;
            }
            let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
            let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            found.push(Example { name, kind, used_by, title: title(&text), file });
        }
    }
    if found.is_empty() {
        let place = folder.display();
        return Err(anyhow!(
            "{place}: no examples are installed (install the package steadyio, or name a directory \
             with --dir)"
        ));
    }
    let order = |example: &Example| KINDS.iter().position(|(kind, _)| *kind == example.kind);
    found.sort_by_key(|example| (order(example), example.name.clone()));
    Ok(found)
}

/// The title of a file, or the first sentence of its comment.
fn title(text: &str) -> String {
    let of_key = |line: &str| {
        let value = line.strip_prefix("title = \"")?;
        value.strip_suffix('"').map(str::to_string)
    };
    if let Some(title) = text.lines().find_map(of_key) {
        return title;
    }
    let comment = text.lines().take_while(|line| line.starts_with('#'));
    let comment = comment.map(|line| line.trim_start_matches('#').trim());
    let comment = comment.filter(|line| !line.starts_with("SPDX")).collect::<Vec<_>>().join(" ");
    comment.split(". ").next().unwrap_or_default().trim_end_matches('.').to_string()
}

fn text_of(found: &[Example], name: &str) -> anyhow::Result<String> {
    let wanted = name.strip_suffix(".toml").unwrap_or(name);
    let is_wanted =
        |one: &&Example| one.name == wanted || format!("{}/{}", one.kind, one.name) == wanted;
    let example = found.iter().find(is_wanted).ok_or_else(|| {
        let names: Vec<&str> = found.iter().map(|example| &*example.name).collect();
        anyhow!("NAME {name}: must be one of {}", names.join(", "))
    })?;
    fs::read_to_string(&example.file).with_context(|| example.file.display().to_string())
}

fn table(found: &[Example]) -> String {
    let mut rows = vec![["name", "kind", "for", "title"].map(String::from).to_vec()];
    for example in found {
        let Example { name, kind, used_by, title, .. } = example;
        rows.push(vec![name.clone(), (*kind).into(), (*used_by).into(), title.clone()]);
    }
    align(&rows, &[0, 1, 2, 3])
}

fn document(found: &[Example]) -> serde_json::Value {
    let one = |example: &Example| {
        json!({
            "name": example.name,
            "kind": example.kind,
            "for": example.used_by.split(", ").collect::<Vec<_>>(),
            "title": example.title,
            "file": example.file,
        })
    };
    json!({
        "schema": SCHEMA,
        "tool": { "steady": env!("CARGO_PKG_VERSION") },
        "examples": found.iter().map(one).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_key_or_the_first_sentence() {
        assert_eq!(title("# One.\nschema = 1\ntitle = \"Two\"\n"), "Two");
        assert_eq!(
            title("# SPDX-License-Identifier: MIT\n# A robot on\n# one card. More.\n"),
            "A robot on one card"
        );
        assert_eq!(title(""), "");
    }
}
