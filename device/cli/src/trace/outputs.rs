// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files that `steady trace` writes.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use steadyio_model::spans_file;
use steadyio_trace::perfetto;
use steadyio_trace::report::record::Record;
use steadyio_trace::report::rows;
use steadyio_trace::report::shown::Shown;

use super::arguments::Arguments;
use crate::record_file::{RecordFile, is_same_file};

/// Checks that no two options name the same file, and that none names an input.
pub fn check(arguments: &Arguments) -> anyhow::Result<()> {
    let named = [
        ("--perfetto", &arguments.perfetto),
        ("--spans", &arguments.spans),
        ("--csv", &arguments.csv),
        ("--json-lines", &arguments.json_lines),
    ];
    let named: Vec<(&str, &PathBuf)> =
        named.iter().filter_map(|(option, path)| Some((*option, path.as_ref()?))).collect();
    for (nth, (option, path)) in named.iter().enumerate() {
        if let Some((other, _)) = named[..nth].iter().find(|(_, other)| is_same_file(path, other)) {
            bail!("{option} {}: {other} names the same file (name another)", path.display());
        }
        if arguments.files.iter().any(|input| is_read(input, path)) {
            bail!("{option} {}: is a file that is read (name another)", path.display());
        }
    }
    Ok(())
}

/// Whether `path` is `input`, or lies in the folder of the kept trace `input`.
fn is_read(input: &Path, path: &Path) -> bool {
    let input = if input == Path::new("-") { Path::new("/dev/stdin") } else { input };
    let inside = || path.file_name().is_some_and(|name| is_same_file(&input.join(name), path));
    is_same_file(input, path) || input.is_dir() && path.exists() && inside()
}

/// Output files, created before tracing begins.
pub struct OutFiles {
    perfetto: Option<RecordFile>,
    spans: Option<RecordFile>,
    csv: Option<RecordFile>,
    json_lines: Option<RecordFile>,
}

impl OutFiles {
    pub fn create(arguments: &Arguments) -> anyhow::Result<OutFiles> {
        let create = |option: &str, path: &Option<PathBuf>| {
            let create = |path: &PathBuf| {
                RecordFile::create(path).with_context(|| format!("{option} {}", path.display()))
            };
            path.as_ref().map(create).transpose()
        };
        Ok(OutFiles {
            perfetto: create("--perfetto", &arguments.perfetto)?,
            spans: create("--spans", &arguments.spans)?,
            csv: create("--csv", &arguments.csv)?,
            json_lines: create("--json-lines", &arguments.json_lines)?,
        })
    }

    pub fn write(self, shown: &Shown, record: &Record) -> anyhow::Result<()> {
        let (trace, names, calls) = (shown.waiting.trace, &shown.question.names, &shown.calls);
        let rows = shown.rows();
        if let Some(file) = self.perfetto {
            file.fill(|out| perfetto::write(trace, names, calls, out)).context("--perfetto")?;
        }
        if let Some(file) = self.csv {
            file.fill(|out| rows::write_csv(&rows, out)).context("--csv")?;
        }
        if let Some(file) = self.json_lines {
            file.fill(|out| rows::write_json_lines(&rows, out)).context("--json-lines")?;
        }
        if let Some(file) = self.spans {
            let spans = spans_file::of_groups(&record.ios).context("--spans")?;
            file.finish(&format!("{spans:#}\n")).context("--spans")?;
        }
        Ok(())
    }
}
