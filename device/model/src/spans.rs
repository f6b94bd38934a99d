// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses and checks files of measured spans (`docs/spec/spans-1.md`). `steady model` reads them
//! with it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use steadyio_trace::report::record::TRACE_SCHEMA;

use super::ModelError;
use super::pipeline::Stages;
use super::spans_file::{self, SPANS_SCHEMA};

const SPAN_US_MAX: f64 = 60_000_000.0;
const NS_PER_US: f64 = 1_000.0;
const SIZE_BYTES_MAX: u64 = 1 << 30;
const MIB_S_MAX: f64 = 1_000_000.0;
const NAME_CHARS_MAX: usize = 64;

/// A part of a request's path. Submission and block together are request-pre.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Span {
    /// The e.MMC analysis paper's first span: VFS and file system, up to the bio.
    Submission,
    /// The paper's second: block layer, scheduler and driver, up to the device's queue.
    Block,
    /// Both, if only their sum is known.
    Pre,
    /// The paper's third: the device, from its queue to its interrupt.
    Device,
    /// The paper's fourth, post-duration: from the interrupt to the end of the request.
    Post,
}

impl Span {
    /// The name in files.
    pub fn word(self) -> &'static str {
        match self {
            Span::Submission => "submission",
            Span::Block => "block",
            Span::Pre => "pre",
            Span::Device => "device",
            Span::Post => "post",
        }
    }

    /// The name in tables, as in the paper.
    pub fn title(self) -> &'static str {
        match self {
            Span::Pre => "request-pre",
            Span::Post => "request-post",
            other => other.word(),
        }
    }
}

/// The spans of one kind of request, in order, with their times in ns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spans(Vec<(Span, u64)>);

impl Spans {
    /// The spans with their times.
    pub fn iter(&self) -> impl Iterator<Item = (Span, u64)> {
        self.0.iter().copied()
    }

    /// The same spans with new times.
    pub fn map(&self, mut new_ns: impl FnMut(Span, u64) -> u64) -> Spans {
        Spans(self.iter().map(|(span, ns)| (span, new_ns(span, ns))).collect())
    }

    /// The stages of the model.
    pub fn stages(&self) -> Stages {
        let mut stages = Stages { pre_ns: 0, device_ns: 0, post_ns: 0 };
        for (span, ns) in self.iter() {
            match span {
                Span::Submission | Span::Block | Span::Pre => stages.pre_ns += ns,
                Span::Device => stages.device_ns += ns,
                Span::Post => stages.post_ns += ns,
            }
        }
        stages
    }
}

/// The direction of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// From the device.
    Read,
    /// To the device.
    Write,
}

/// Times as written in a file or on the command line, in us.
#[derive(Debug, Clone, Copy, Default)]
pub struct Times {
    /// The first part of request-pre.
    pub submission_us: Option<f64>,
    /// The second part of request-pre.
    pub block_us: Option<f64>,
    /// Request-pre as a whole.
    pub pre_us: Option<f64>,
    pub device_us: Option<f64>,
    pub post_us: Option<f64>,
}

impl Times {
    /// Checks the times. An error begins with the key.
    pub fn check(self) -> Result<Spans, ModelError> {
        let pre = match (self.pre_us, self.submission_us, self.block_us) {
            (Some(pre), None, None) => vec![(Span::Pre, pre)],
            (None, Some(submission), Some(block)) => {
                vec![(Span::Submission, submission), (Span::Block, block)]
            }
            (Some(_), _, _) => {
                return refuse(
                    "pre_us: is the sum of submission_us and block_us, so either pre_us \
                               or those two are allowed",
                );
            }
            (None, _, _) => {
                return refuse(
                    "pre_us is missing: either pre_us is needed, or both submission_us \
                               and block_us",
                );
            }
        };
        let Some(device) = self.device_us else { return refuse("device_us is missing") };
        let Some(post) = self.post_us else { return refuse("post_us is missing") };
        let mut spans = Vec::new();
        for (span, us) in pre.into_iter().chain([(Span::Device, device), (Span::Post, post)]) {
            let key = format!("{}_us", span.word());
            spans.push((span, nanoseconds(&key, us)?));
        }
        if spans.iter().any(|(_, ns)| *ns > 0) {
            Ok(Spans(spans))
        } else {
            refuse("all spans are 0: at least one must take time")
        }
    }
}

fn refuse<T>(text: &str) -> Result<T, ModelError> {
    Err(ModelError(text.into()))
}

fn nanoseconds(key: &str, us: f64) -> Result<u64, ModelError> {
    check_range(key, us, SPAN_US_MAX)?;
    Ok((us * NS_PER_US).round() as u64)
}

fn check_range(key: &str, value: f64, max: f64) -> Result<(), ModelError> {
    if (0.0..=max).contains(&value) {
        Ok(())
    } else {
        Err(ModelError(format!("{key} = {value}: must be 0 to {max}")))
    }
}

/// One kind of request.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The name, unique in its file.
    pub name: String,
    /// None for numbers from a command line. The model does not need it.
    pub op: Option<Op>,
    /// The size of one request.
    pub size_bytes: u64,
    /// The number of requests of which the times are the mean.
    pub count: Option<u64>,
    /// The times of a request.
    pub spans: Spans,
    /// The speed that an application measured.
    pub measured_mib_s: Option<f64>,
}

impl Entry {
    /// Checks the values from a command line.
    pub fn new(name: &str, size_bytes: u64, times: Times) -> Result<Entry, ModelError> {
        check_size(size_bytes)?;
        let (name, spans) = (name.to_string(), times.check()?);
        Ok(Entry { name, op: None, size_bytes, count: None, spans, measured_mib_s: None })
    }
}

fn check_size(size_bytes: u64) -> Result<(), ModelError> {
    if (1..=SIZE_BYTES_MAX).contains(&size_bytes) {
        Ok(())
    } else {
        Err(ModelError(format!("size_bytes = {size_bytes}: must be 1 to {SIZE_BYTES_MAX}")))
    }
}

/// A file of measured spans.
#[derive(Debug, Clone, PartialEq)]
pub struct SpansFile {
    /// The name of the file's content in results.
    pub name: String,
    /// The source of the numbers.
    pub source: String,
    /// The entries; at least one.
    pub entries: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileAsWritten {
    schema: String,
    name: String,
    #[serde(default)]
    source: String,
    /// Notes of the measuring program, which are ignored.
    #[serde(default, rename = "detail")]
    _detail: serde::de::IgnoredAny,
    spans: Vec<EntryAsWritten>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryAsWritten {
    name: String,
    op: Op,
    size_bytes: u64,
    count: Option<u64>,
    submission_us: Option<f64>,
    block_us: Option<f64>,
    pre_us: Option<f64>,
    device_us: Option<f64>,
    post_us: Option<f64>,
    measured_mib_s: Option<f64>,
    #[serde(default, rename = "detail")]
    _detail: serde::de::IgnoredAny,
}

impl EntryAsWritten {
    fn check(self) -> Result<Entry, ModelError> {
        check_name("name", &self.name)?;
        check_size(self.size_bytes)?;
        if self.count == Some(0) {
            return refuse("count = 0: must be 1 or more; leave it out if it is not known");
        }
        if let Some(value) = self.measured_mib_s {
            check_range("measured_mib_s", value, MIB_S_MAX)?;
        }
        let EntryAsWritten { submission_us, block_us, pre_us, device_us, post_us, .. } = self;
        let times = Times { submission_us, block_us, pre_us, device_us, post_us };
        Ok(Entry {
            spans: times.check()?,
            name: self.name,
            op: Some(self.op),
            size_bytes: self.size_bytes,
            count: self.count,
            measured_mib_s: self.measured_mib_s,
        })
    }
}

fn check_name(key: &str, name: &str) -> Result<(), ModelError> {
    let plain = !name.trim().is_empty() && !name.contains(char::is_control);
    if plain && name.chars().count() <= NAME_CHARS_MAX {
        Ok(())
    } else {
        Err(ModelError(format!(
            "{key} = {name:?}: must be 1 to {NAME_CHARS_MAX} characters, on one line"
        )))
    }
}

/// Reads TOML, or JSON if the text starts with a brace, which TOML never does. JSON may also be the
/// record of a trace; then the reads and writes of system calls are used.
pub fn parse(text: &str) -> Result<SpansFile, ModelError> {
    if !text.trim_start().starts_with('{') {
        let written = toml::from_str(text).map_err(|error| ModelError(error.to_string()))?;
        return check_file(written);
    }
    let written = match schema_of(text).as_deref() {
        Some(TRACE_SCHEMA) => {
            let spans = spans_file::of_json(text).map_err(|error| ModelError(error.to_string()))?;
            from_json(&spans.to_string())?
        }
        Some(other) if other != SPANS_SCHEMA => return Err(wrong_schema(other)),
        _ => from_json(text)?,
    };
    check_file(written)
}

/// The schema of a file; None if the file does not name one, or is incomplete.
fn schema_of(text: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Head {
        schema: String,
    }
    serde_json::from_str::<Head>(text).ok().map(|head| head.schema)
}

fn wrong_schema(schema: &str) -> ModelError {
    let known = format!("\"{SPANS_SCHEMA}\", or \"{TRACE_SCHEMA}\" (steady trace --json)");
    ModelError(format!("schema = {schema:?}: must be {known}"))
}

fn from_json(text: &str) -> Result<FileAsWritten, ModelError> {
    let mut json = serde_json::Deserializer::from_str(text);
    let written = serde_path_to_error::deserialize(&mut json)
        .map_err(|error| ModelError(error.to_string()))?;
    json.end().map_err(|error| ModelError(error.to_string()))?;
    Ok(written)
}

fn check_file(written: FileAsWritten) -> Result<SpansFile, ModelError> {
    let FileAsWritten { schema, name, source, spans, .. } = written;
    if schema != SPANS_SCHEMA {
        return Err(wrong_schema(&schema));
    }
    check_name("name", &name)?;
    if spans.is_empty() {
        return refuse("[[spans]] is missing: there must be at least one");
    }
    let mut seen = BTreeSet::new();
    let mut entries = Vec::new();
    for (entry, number) in spans.into_iter().zip(1..) {
        let place = format!("spans {number} ({})", entry.name);
        if !seen.insert(entry.name.clone()) {
            return Err(ModelError(format!("{place}: name appears twice, names must differ")));
        }
        let entry = entry.check().map_err(|ModelError(text)| format!("{place}: {text}"));
        entries.push(entry.map_err(ModelError)?);
    }
    Ok(SpansFile { name, source, entries })
}
