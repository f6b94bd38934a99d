// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints tables of the time in each layer, in us. `steady trace` calls it.

use std::collections::BTreeMap;

use steadyio_trace::report::calls::{CallGroup, CallSum, CallsOf};
use steadyio_trace::report::distribution::Distribution;
use steadyio_trace::report::groups::Group;
use steadyio_trace::report::record::{ClassTimes, Record};
use steadyio_trace::report::times::{SPANS, StepTimes, Times};
use steadyio_trace::report::words::{count, path_text, size_text, thread, us};

use crate::table::align;

/// The text columns in the tables of shares and of figures.
const SHARE_WORDS: [usize; 1] = [0];
const FIGURE_WORDS: [usize; 2] = [0, 1];
/// The number of inodes to list.
const INODES_MAX: usize = 5;
const CALLS_OF_MAX: usize = 20;
/// The smallest share of a file to list. A process has many files, most of which hardly matter.
const FILE_PERCENT_MIN: u64 = 1;
const NS_PER_US: f64 = 1_000.0;
const NS_PER_MS: f64 = 1_000_000.0;

/// All tables; with `fine`, also the finer spans.
pub fn tables(record: &Record, fine: bool) -> String {
    // If each process has one thread, the table by process equals that by thread.
    let differ = record.processes.len() < record.threads.len();
    let processes: &[CallsOf] = if differ { &record.processes } else { &[] };
    let sections = [
        ios(&record.ios, fine),
        requests("Requests outside system calls", &record.requests, fine),
        requests("Flushes and discards of any origin", &record.flushes_and_discards, fine),
        calls_without_request(&record.calls_without_request),
        calls(&record.calls),
        calls_of("Calls by process", processes, 0),
        calls_of("Calls by cgroup", &record.cgroups, 0),
        calls_of("Calls by thread", &record.threads, 0),
        calls_of("Calls by file", &record.files, FILE_PERCENT_MIN),
        classes(&record.classes),
    ];
    let shown: Vec<String> = sections.into_iter().flatten().collect();
    let scope = &record.scope;
    match (shown.is_empty(), scope.ios_hidden + scope.requests_hidden) {
        (false, _) => shown.join("\n"),
        (true, 0) => "The trace has no complete I/O or request.\n".into(),
        (true, _) => {
            "The trace has no I/O or request of the requested processes and device.\n".into()
        }
    }
}

fn ios(groups: &[Group], fine: bool) -> Option<String> {
    let rows = rows(groups)?;
    let title = "I/Os of system calls";
    let text = format!("{title}\n{}\n{}", shares(&rows), figures(&rows));
    Some(if fine { format!("{text}\n{}\n{}", steps(&rows), histograms(&rows)) } else { text })
}

/// The tables of requests: for most users, the shares and the whole suffice.
fn requests(title: &str, groups: &[Group], fine: bool) -> Option<String> {
    let rows = rows(groups)?;
    let text = format!("{title}\n{}{}", totals(&rows), inodes(groups));
    Some(if fine { format!("{text}\n{}", steps(&rows)) } else { text })
}

/// The rows; `None` if there are none.
fn rows(groups: &[Group]) -> Option<Vec<(String, &Times)>> {
    let rows = groups.iter().map(|group| (label(group), &group.times)).collect();
    (!groups.is_empty()).then_some(rows)
}

fn label(group: &Group) -> String {
    match &group.origin {
        Some(origin) => format!("{origin}: {}", group.title()),
        None => group.title(),
    }
}

/// The mean time per span: one line per group.
fn shares(rows: &[(String, &Times)]) -> String {
    let [submission, block, device, post] = SPANS.map(|span| format!("{span} %"));
    let software = "software %".to_string();
    let (count, mean) = ("count".to_string(), "mean us".to_string());
    let mut table = vec![[String::new(), count, mean, submission, block, device, post, software]];
    for (label, times) in rows {
        let share = |span| times.span(span).map_or("-".into(), |span| one(span.share_percent));
        let [submission, block, device, post] = SPANS.map(share);
        table.push([
            label.clone(),
            times.count.to_string(),
            one(times.total.mean_ns / NS_PER_US),
            submission,
            block,
            device,
            post,
            one(times.software_percent),
        ]);
    }
    align(&table, &SHARE_WORDS)
}

/// The share of each span, and the distribution of the whole: one line per group.
fn totals(rows: &[(String, &Times)]) -> String {
    let head =
        ["", "count", "block %", "device %", "post %", "mean us", "p50", "p99", "p99.9", "max"];
    let mut table = vec![head.map(String::from)];
    for (label, times) in rows {
        let share = |span| times.span(span).map_or("-".into(), |span| one(span.share_percent));
        let total = &times.total;
        table.push([
            label.clone(),
            times.count.to_string(),
            share("block"),
            share("device"),
            share("post"),
            one(total.mean_ns / NS_PER_US),
            us(total.p50_ns),
            us(total.p99_ns),
            us(total.p999_ns),
            us(total.max_ns),
        ]);
    }
    align(&table, &SHARE_WORDS)
}

/// Calls that queued nothing themselves: one line per kind and reason of the wait.
fn calls_without_request(groups: &[CallGroup]) -> Option<String> {
    let head = ["", "waited for", "count", "sum ms", "mean us", "p50", "p99", "p99.9", "max"];
    let mut table = vec![head.map(String::from)];
    table.extend(groups.iter().map(|group| {
        let CallGroup { op, waited_for, sum_ns, times } = group;
        [
            (*op).into(),
            waited_for.replace('_', " "),
            times.count.to_string(),
            one(*sum_ns as f64 / NS_PER_MS),
            one(times.mean_ns / NS_PER_US),
            us(times.p50_ns),
            us(times.p99_ns),
            us(times.p999_ns),
            us(times.max_ns),
        ]
    }));
    let text = || format!("Calls without a request of their own\n{}", align(&table, &FIGURE_WORDS));
    (!groups.is_empty()).then(text)
}

/// The shares of each reason in the time of the calls, by name; only reasons that occur.
fn calls(sums: &[CallSum]) -> Option<String> {
    let mut waited_for: Vec<&str> =
        sums.iter().flat_map(|sum| sum.waits.iter().map(|wait| wait.waited_for)).collect();
    waited_for.sort_unstable();
    waited_for.dedup();
    let head = ["", "count", "sum ms"].map(String::from).into_iter();
    let kinds = waited_for.iter().map(|what| format!("{} %", what.replace('_', " ")));
    let mut table = vec![head.chain(kinds).collect::<Vec<_>>()];
    for sum in sums.iter().filter(|sum| sum.sum_ns > 0) {
        let share = |what: &&str| {
            let found = sum.waits.iter().find(|wait| wait.waited_for == *what);
            found.map_or("-".into(), |wait| one(wait.ns as f64 * 100.0 / sum.sum_ns as f64))
        };
        let figures = [sum.call.into(), sum.count.to_string(), one(sum.sum_ns as f64 / NS_PER_MS)];
        table.push(figures.into_iter().chain(waited_for.iter().map(share)).collect());
    }
    let text = || format!("What calls waited for\n{}", align(&table, &SHARE_WORDS));
    (!sums.is_empty()).then(text)
}

/// All calls of each thread, process, cgroup or file, if there are several. Only those with at
/// least this share of all time.
fn calls_of(title: &str, sums: &[CallsOf], percent_min: u64) -> Option<String> {
    let head = ["", "calls", "I/Os", "MiB", "sum ms", "mean us", "p50", "p99", "p99.9", "max"];
    let mut table = vec![head.map(String::from)];
    let whole_ns: u64 = sums.iter().map(|sum| sum.sum_ns).sum();
    let matters = |sum: &&CallsOf| sum.sum_ns * 100 >= whole_ns * percent_min;
    table.extend(sums.iter().filter(matters).take(CALLS_OF_MAX).map(|sum| {
        let times = &sum.times;
        [
            title_of(sum),
            times.count.to_string(),
            sum.ios.to_string(),
            one(sum.bytes as f64 / f64::from(1 << 20)),
            one(sum.sum_ns as f64 / NS_PER_MS),
            one(times.mean_ns / NS_PER_US),
            us(times.p50_ns),
            us(times.p99_ns),
            us(times.p999_ns),
            us(times.max_ns),
        ]
    }));
    let more = match sums.len() + 1 - table.len() {
        0 => String::new(),
        more => format!("and {}; --json lists them\n", count(more as u64, "other")),
    };
    let text = || format!("{title}\n{}{more}", align(&table, &SHARE_WORDS));
    (sums.len() > 1).then(text)
}

fn title_of(sum: &CallsOf) -> String {
    let thread = thread(&sum.comm, sum.pid);
    match (&sum.cgroup, &sum.path, sum.fd) {
        (Some(cgroup), ..) => cgroup.clone(),
        (_, Some(_), _) => path_text("", sum.path.as_ref(), ""),
        (_, _, Some(fd)) => format!("fd {fd} of {thread}"),
        _ => thread,
    }
}

/// The distribution of each span and of the whole: several lines per group.
fn figures(rows: &[(String, &Times)]) -> String {
    let mut table = vec![head()];
    for (label, times) in rows {
        let spans = times.spans.iter().map(|span| (&*span.span, &span.times));
        let lines = spans.chain([("total", &times.total)]).enumerate();
        table.extend(lines.map(|(number, (name, times))| row(label, number, name, times)));
    }
    align(&table, &FIGURE_WORDS)
}

/// The same of the finer spans, which not every request has.
fn steps(rows: &[(String, &Times)]) -> String {
    let mut table = vec![head()];
    for (label, times) in rows {
        let lines = times.steps.iter().enumerate();
        let name = |step: &StepTimes| match step.btt() {
            Some(btt) => format!("{} ({btt})", step.step),
            None => step.step.clone(),
        };
        table.extend(lines.map(|(number, step)| row(label, number, &name(step), &step.times)));
    }
    align(&table, &FIGURE_WORDS)
}

/// The histogram of the times: one line per power of two.
fn histograms(rows: &[(String, &Times)]) -> String {
    let mut table = vec![["", "from us", "to us", "count", "%"].map(String::from)];
    for (label, times) in rows {
        let bins = times.histogram.iter().filter(|bin| bin.count > 0).enumerate();
        table.extend(bins.map(|(number, bin)| {
            [
                if number == 0 { label.clone() } else { String::new() },
                (bin.from_ns / 1_000).to_string(),
                (bin.to_ns / 1_000).to_string(),
                bin.count.to_string(),
                one(bin.count as f64 * 100.0 / times.count as f64),
            ]
        }));
    }
    align(&table, &SHARE_WORDS)
}

fn head() -> [String; 8] {
    ["", "us", "count", "mean", "p50", "p99", "p99.9", "max"].map(String::from)
}

/// A row. Only the first line of a group has its label.
fn row(label: &str, number: usize, name: &str, times: &Distribution) -> [String; 8] {
    [
        if number == 0 { label.into() } else { String::new() },
        name.into(),
        times.count.to_string(),
        one(times.mean_ns / NS_PER_US),
        us(times.p50_ns),
        us(times.p99_ns),
        us(times.p999_ns),
        us(times.max_ns),
    ]
}

/// The inodes with most bytes, over all sizes.
fn inodes(groups: &[Group]) -> String {
    let mut sums = BTreeMap::<_, (u64, u64)>::new();
    for group in groups {
        for of in &group.inodes {
            let origin = group.origin.as_deref().unwrap_or_default();
            let key = (origin, &group.device, of.inode, of.path.as_ref());
            let sum = sums.entry(key).or_default();
            *sum = (sum.0 + of.bytes, sum.1 + of.requests);
        }
    }
    let mut most: Vec<_> = sums.into_iter().collect();
    most.sort_by_key(|(_, (bytes, _))| std::cmp::Reverse(*bytes));
    let lines = most.into_iter().take(INODES_MAX);
    let lines = lines.map(|((origin, device, inode, path), (bytes, requests))| {
        let (size, requests) = (size_text(bytes), count(requests, "request"));
        let path = path_text(" (", path, ")");
        format!("{origin} of inode {inode}{path} on {device}: {size} in {requests}\n")
    });
    lines.collect()
}

/// The table of classes, if there are several.
fn classes(classes: &[ClassTimes]) -> Option<String> {
    if classes.iter().all(|one| one.class == classes[0].class) {
        return None;
    }
    let label = |times: &ClassTimes| {
        let of = if times.of == "ios" { "I/Os" } else { "other requests" };
        format!("{} {of}", times.class)
    };
    let rows: Vec<(String, &Times)> = classes.iter().map(|one| (label(one), &one.times)).collect();
    Some(format!("By I/O priority class\n{}", totals(&rows)))
}

/// Prints one decimal.
fn one(value: f64) -> String {
    format!("{value:.1}")
}
