// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints the worst I/Os with their causes, and the account, as lines of text. `steady trace` calls
//! it.

use steadyio_trace::report::calls::WorstCall;
use steadyio_trace::report::record::Record;
use steadyio_trace::report::waited_for::WaitedFor;
use steadyio_trace::report::words::size_text;
use steadyio_trace::report::words::{behalf, count, path_text, thread, us};
use steadyio_trace::report::worst::{Largest, Worst};

/// The number of unmatched requests and parse errors to print; the record lists more.
const LISTED_MAX: usize = 5;
const HINT: &str = " (sched_switch and sched_waking would tell: --sched)";
const NS_PER_S: u64 = 1_000_000_000;

/// The worst I/Os and calls, and the worst requests outside system calls.
pub fn worst(record: &Record) -> String {
    let lacks_sched = record.missing.iter().any(|missing| missing.event == "sched:sched_switch");
    let list = |title: &str, entries: Vec<String>| {
        let numbered = entries.iter().zip(1..).map(|(entry, number)| format!("{number}. {entry}"));
        let text = numbered.collect::<String>();
        if text.is_empty() { text } else { format!("\n{title}\n{text}") }
    };
    let requests = record.worst_requests.iter().map(|worst| entry(worst, lacks_sched));
    list("Worst I/Os and other calls", ios_and_calls(record, lacks_sched))
        + &list("Worst requests outside system calls", requests.collect())
}

/// The longest of both kinds, at most as many as one kind has.
fn ios_and_calls(record: &Record, lacks_sched: bool) -> Vec<String> {
    let (ios, calls) = (&record.worst_ios, &record.worst_calls);
    let ios_in_words = ios.iter().map(|worst| (worst.total_ns, entry(worst, lacks_sched)));
    let calls_in_words = calls.iter().map(|call| (call.total_ns, call_entry(call, lacks_sched)));
    let mut all: Vec<(u64, String)> = ios_in_words.chain(calls_in_words).collect();
    all.sort_by_key(|(ns, _)| std::cmp::Reverse(*ns));
    all.truncate(ios.len().max(calls.len()));
    all.into_iter().map(|(_, text)| text).collect()
}

fn call_entry(call: &WorstCall, lacks_sched: bool) -> String {
    let what = if call.incomplete {
        "its requests are not all known"
    } else {
        "without a request of its own"
    };
    let (thread, at) = (thread(&call.comm, call.pid), seconds(call.at_ns));
    let file = path_text(", file ", call.path.as_ref(), "");
    let waits: String = call.waits.iter().map(|wait| format!("   - {}\n", wait.text)).collect();
    let hint = if lacks_sched { HINT } else { "" };
    let is_unknown = call.waits.first().is_some_and(|wait| wait.what == WaitedFor::Unknown);
    let waits = if is_unknown { waits.replacen('\n', &format!("{hint}\n"), 1) } else { waits };
    format!("{} us  {} by {thread}{file}, {what}, at {at} s\n{waits}", us(call.total_ns), call.call)
}

fn entry(worst: &Worst, lacks_sched: bool) -> String {
    let spans = worst.spans;
    let all = [
        ("submission", spans.submission_ns),
        ("block", spans.block_ns),
        ("device", spans.device_ns),
        ("post", spans.post_ns),
    ];
    let usual = worst.largest;
    let span = |(name, ns): (&str, u64)| {
        if name == usual.span {
            format!("{name} {} (median {} of {})", us(ns), us(usual.p50_ns), usual.of_count)
        } else {
            format!("{name} {}", us(ns))
        }
    };
    let parts: Vec<String> = all.into_iter().filter(|(_, ns)| *ns > 0).map(span).collect();
    let causes: String =
        worst.causes.iter().map(|cause| format!("   - {}\n", cause.text)).collect();
    let causes = if causes.is_empty() {
        let thread_decides = lacks_sched && matches!(usual.span, "submission" | "post");
        let hint = if thread_decides && worst.call.is_some() { HINT } else { "" };
        format!("   - cause unknown, {} us in {}{hint}\n", us(usual.ns), usual.span)
    } else {
        causes
    };
    format!("{}\n   {}\n{causes}", title(worst), parts.join(", "))
}

/// One of the worst, with all its causes.
pub fn in_one_line(worst: &Worst) -> String {
    let causes: Vec<&str> = worst.causes.iter().map(|cause| cause.text.as_str()).collect();
    let Largest { span, ns, .. } = worst.largest;
    match causes.is_empty() {
        true => format!("{}; cause unknown, {} us in {span}", title(worst), us(ns)),
        false => format!("{}; {}", title(worst), causes.join("; ")),
    }
}

fn title(worst: &Worst) -> String {
    let mut text = format!("{} us  {}", us(worst.total_ns), worst.call.unwrap_or(worst.op));
    if worst.call.is_some_and(|call| call != worst.op) && worst.bytes > 0 {
        text += &format!(" ({})", worst.op);
    }
    if worst.bytes > 0 {
        text += &format!(" {}", size_text(worst.bytes));
    }
    text += &format!(
        " on {} sector {} by {}",
        worst.device,
        worst.sector,
        thread(&worst.comm, worst.pid)
    );
    if worst.requests > 1 {
        text += &format!(", {} requests", worst.requests);
    }
    if worst.call.is_none() {
        text += &format!(", {}", behalf(worst.origin, worst.inode));
    }
    text += &path_text(", file ", worst.path.as_ref(), "");
    if let Some(class) = worst.class {
        text += &format!(", class {class}");
    }
    if worst.error != 0 {
        text += &format!(", failed with {}", std::io::Error::from_raw_os_error(-worst.error));
    }
    text + &format!(", at {} s", seconds(worst.at_ns))
}

/// The flaws of the trace, to print before the tables; empty without any.
pub fn flaws(record: &Record) -> String {
    let (of, all) = (&record.account.of_trace, &record.account);
    let parts = [
        (of.events_lost, "event", "lost"),
        (of.unmatched_count, "request", "unmatched"),
        (all.unread.count, "part of the trace", "unreadable"),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(number, ..)| *number > 0)
        .map(|(number, what, how)| format!("{} {how}", count(number, what)))
        .collect();
    if parts.is_empty() {
        return String::new();
    }
    format!("Incomplete: {}; what follows lacks I/Os (see the account)\n\n", parts.join(", "))
}

/// The completeness of the trace: events, requests that could not be matched, missing events.
pub fn account(record: &Record) -> String {
    let (of, all) = (&record.account.of_trace, &record.account);
    let mut text = format!(
        "\nAccount\n{} events, {} lost; {} matched, {} at the edges of the trace, \
         {} hit by lost events, {} unmatched\n",
        of.events,
        of.events_lost,
        count(of.matched, "request"),
        of.at_the_edges,
        of.hit_by_loss,
        of.unmatched_count
    );
    text += &format!(
        "{} without a request; {} incomplete: a part lies outside the trace, was lost or is ambiguous\n",
        count(of.calls_without_request, "call"),
        count(of.ios_incomplete, "I/O")
    );
    if of.failed > 0 {
        text +=
            &format!("{} failed: --csv and --json list the errors\n", count(of.failed, "request"));
    }
    if all.events_skipped > 0 {
        text += &format!("skipped: {} of other kinds\n", count(all.events_skipped, "event"));
    }
    for one in all.unmatched_first.iter().take(LISTED_MAX) {
        let at = seconds(one.at_ns);
        text += &format!(
            "unmatched: {} on {} sector {} at {at} s: {}\n",
            one.op, one.device, one.sector, one.why
        );
    }
    text += &more(of.unmatched_count);
    for problem in all.unread.first.iter().take(LISTED_MAX) {
        text += &format!("not read: {problem}\n");
    }
    text += &more(all.unread.count);
    for missing in &record.missing {
        text += &format!("missing event {}: {}\n", missing.event, missing.consequence);
    }
    let scope = &record.scope;
    if scope.ios_hidden + scope.requests_hidden > 0 {
        let ios = count(scope.ios_hidden, "I/O");
        let requests = count(scope.requests_hidden, "request");
        text += &format!("hidden: {ios} and {requests} of other processes or devices\n");
    }
    text
}

fn more(count: u64) -> String {
    match count.checked_sub(LISTED_MAX as u64) {
        Some(more) if more > 0 => format!("  and {more} more; --json lists them\n"),
        _ => String::new(),
    }
}

/// A time as trace-cmd and perf print it.
fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / NS_PER_S, ns % NS_PER_S)
}
