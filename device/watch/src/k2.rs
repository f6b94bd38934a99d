// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads k2's counters since it was selected, in `queue/iosched/`. docs/reference/k2.md describes
//! the files. `sample` calls it.

use std::io;

use steadyio_core::blocked::Blocked;

use crate::declared::{self, Task};
use crate::sysfs::Disk;
use crate::unclear::{number, unclear};

pub use crate::unclear::Unclear;

pub const LEVELS: usize = 8;

/// The names in the files; real-time first.
pub const CLASSES: [&str; LEVELS + 3] =
    ["rt0", "rt1", "rt2", "rt3", "rt4", "rt5", "rt6", "rt7", "metadata", "best_effort", "idle"];

/// The bound of the last bucket, for latencies above all other bounds.
pub const INFINITY_NS: u64 = u64::MAX;

/// One bucket up to 2^12 ns, then four buckets per power of two.
const FIRST_BOUND_LOG2: u32 = 12;
const LAST_BOUND_LOG2: u32 = 34;

/// The upper bounds of all buckets except the last, in ns.
pub fn bounds_ns() -> impl Iterator<Item = u64> {
    let quarters = |log2: u32| (1..=4).map(move |part| (1 << log2) + part * ((1 << log2) / 4));
    std::iter::once(1 << FIRST_BOUND_LOG2)
        .chain((FIRST_BOUND_LOG2..LAST_BOUND_LOG2).flat_map(quarters))
}

/// The latencies of one class or level.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Latency {
    pub count: u64,
    pub sum_ns: u64,
    pub max_ns: u64,
    pub late: u64,
    /// The upper bound in ns and the count of each non-empty bucket, rising.
    pub buckets: Vec<(u64, u64)>,
}

/// The counts of requests by event, for real-time or for the background.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    pub class: String,
    pub events: Vec<(String, u64)>,
}

/// The counters. None or empty: this version of k2 does not have the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct K2 {
    /// The latencies, in the order of [`CLASSES`].
    pub latency: Option<Vec<Latency>>,
    pub blocked: Option<Blocked>,
    /// The real-time requests that took too long, by cause.
    pub excess: Vec<(String, u64)>,
    pub declared: Vec<Task>,
    pub counts: Vec<Counts>,
    /// The deadline of each level; 0: none.
    pub deadline_us: Vec<u64>,
    /// The bound: the time for which background may block real-time; 0: off.
    pub rt_block_us: Option<u64>,
}

impl K2 {
    /// Reads all files. It also returns the errors of those that cannot be parsed.
    pub fn read(disk: &Disk) -> (K2, Vec<String>) {
        let mut files = Files { disk, faults: Vec::new() };
        let latency = CLASSES.map(|class| files.get(&format!("latency_{class}"), parse_latency));
        let k2 = K2 {
            latency: latency.into_iter().collect(),
            blocked: files.get("rt_blocked", parse_blocked),
            excess: files.get("rt_excess", parse_excess).unwrap_or_default(),
            declared: files.get("rt_declared", declared::parse).unwrap_or_default(),
            counts: files.get("counts", parse_counts).unwrap_or_default(),
            deadline_us: files.get("rt_deadline_us", parse_numbers).unwrap_or_default(),
            rt_block_us: files.get("rt_block_us", |text| number(text, "number", text)),
        };
        (k2, files.faults)
    }
}

struct Files<'a> {
    disk: &'a Disk,
    faults: Vec<String>,
}

impl Files<'_> {
    /// Reads one file; None if it is missing or cannot be parsed.
    fn get<T>(&mut self, file: &str, parse: fn(&str) -> Result<T, Unclear>) -> Option<T> {
        match self.disk.read(&format!("queue/iosched/{file}")) {
            Ok(text) => parse(text.trim_end())
                .map_err(|fault| self.faults.push(fault.in_file(file).to_string()))
                .ok(),
            // Another version of k2, or the disk or the scheduler has just gone.
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => None,
            Err(error) => {
                self.faults.push(format!("iosched/{file}: {error}"));
                None
            }
        }
    }
}

fn after(line: &str, name: &str) -> Result<u64, Unclear> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let found = words.windows(2).find(|pair| pair[0] == name);
    number(found.map_or("", |pair| pair[1]), name, line)
}

fn parse_latency(text: &str) -> Result<Latency, Unclear> {
    let (head, buckets) = text.split_once('\n').unwrap_or((text, ""));
    let mut latency = Latency {
        count: after(head, "count")?,
        sum_ns: after(head, "sum_ns")?,
        max_ns: after(head, "max_ns")?,
        late: after(head, "late")?,
        buckets: Vec::new(),
    };
    for bucket in buckets.split_whitespace() {
        let (bound, count) = bucket.split_once(':').ok_or_else(|| unclear(bucket, "bucket"))?;
        let bound_ns = if bound == "inf" { INFINITY_NS } else { number(bound, "bound", bucket)? };
        latency.buckets.push((bound_ns, number(count, "count", bucket)?));
    }
    Ok(latency)
}

fn parse_blocked(line: &str) -> Result<Blocked, Unclear> {
    Blocked::parse(line).ok_or_else(|| unclear(line, "count, over, unguarded and two max_ns"))
}

/// Parses causes with a count each, then `max_ns`.
fn parse_excess(line: &str) -> Result<Vec<(String, u64)>, Unclear> {
    let causes = line.split_once(" max_ns ").ok_or_else(|| unclear(line, "max_ns"))?.0;
    pairs(causes.split_whitespace(), line)
}

fn pairs<'a>(
    words: impl Iterator<Item = &'a str>,
    line: &str,
) -> Result<Vec<(String, u64)>, Unclear> {
    let words: Vec<&str> = words.collect();
    let pair = |pair: &[&str]| match pair {
        [name, count] => Ok((name.to_string(), number(count, name, line)?)),
        _ => Err(unclear(line, "number at its end")),
    };
    words.chunks(2).map(pair).collect()
}

fn parse_counts(text: &str) -> Result<Vec<Counts>, Unclear> {
    let counts = |line: &str| {
        let mut words = line.split_whitespace();
        let class = words.next().ok_or_else(|| unclear(line, "class"))?.to_string();
        Ok(Counts { class, events: pairs(words, line)? })
    };
    text.lines().map(counts).collect()
}

fn parse_numbers(line: &str) -> Result<Vec<u64>, Unclear> {
    line.split_whitespace().map(|word| number(word, "number", line)).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_quarters_of_powers_of_two() {
        let bounds: Vec<u64> = bounds_ns().collect();
        assert_eq!(bounds[..6], [4096, 5120, 6144, 7168, 8192, 10240]);
        assert_eq!((bounds.len(), *bounds.last().unwrap()), (89, 17_179_869_184));
    }

    #[test]
    fn a_latency_file_has_counters_and_buckets() {
        let text = "count 4 sum_ns 90 max_ns 70 late 1\n4096:1 8192:2 inf:1";
        let latency = parse_latency(text).unwrap();
        let buckets = vec![(4096, 1), (8192, 2), (INFINITY_NS, 1)];
        assert_eq!(latency, Latency { count: 4, sum_ns: 90, max_ns: 70, late: 1, buckets });
    }

    #[test]
    fn a_class_without_requests_has_an_empty_line() {
        let latency = parse_latency("count 0 sum_ns 0 max_ns 0 late 0").unwrap();
        assert_eq!(latency, Latency::default());
    }

    #[test]
    fn an_excess_has_a_count_for_each_cause() {
        let excess = parse_excess("stall 0 early 2 max_ns 700").unwrap();
        assert_eq!(excess, [("stall".into(), 0), ("early".into(), 2)]);
        assert!(parse_excess("stall 0 early 2").is_err());
        assert!(parse_excess("stall max_ns 7").is_err());
    }

    #[test]
    fn counts_have_a_line_for_each_half() {
        let counts =
            parse_counts("rt inserted 3 merged 0\nbackground inserted 8 merged 1").unwrap();
        assert_eq!(counts[1].class, "background");
        assert_eq!(counts[1].events[1], ("merged".into(), 1));
    }

    #[test]
    fn what_is_missing_is_named_with_its_line() {
        let error = parse_latency("count 4 sum_ns 90 max_ns x late 1").unwrap_err().to_string();
        assert!(error.contains("max_ns x late") && error.contains("has no max_ns"), "{error}");
        assert!(parse_counts("rt inserted").is_err() && parse_latency("count 1\n4096").is_err());
    }
}
