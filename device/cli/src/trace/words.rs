// SPDX-License-Identifier: MIT OR Apache-2.0
//! The worst I/Os with their causes, and the account, in words.

use steadyio_trace::report::cause::{Cause, Other};
use steadyio_trace::report::groups::size_text;
use steadyio_trace::report::record::Record;
use steadyio_trace::report::worst::Worst;

use super::tables::us;
use super::thread_words;

/// As many requests that do not add up, and places that could not be read, are listed; JSON has more.
const LISTED_MAX: usize = 5;
const HINT: &str = " (the events sched_switch and sched_waking would tell: --sched)";
const NS_PER_S: u64 = 1_000_000_000;

/// The worst I/Os, and the worst requests of no I/O.
pub fn worst(record: &Record) -> String {
    let lacks_sched = record.missing.iter().any(|missing| missing.event == "sched:sched_switch");
    let list = |title: &str, worst: &[Worst]| {
        if worst.is_empty() {
            String::new()
        } else {
            let entries = worst.iter().zip(1..).map(|one| entry(one, lacks_sched));
            format!("\n{title}\n") + &entries.collect::<String>()
        }
    };
    list("Worst I/Os", &record.worst_ios)
        + &list("Worst requests that no program's call waited for", &record.worst_requests)
}

fn entry((worst, number): (&Worst, usize), lacks_sched: bool) -> String {
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
            format!("{name} {} (median {} of {})", ns_us(ns), ns_us(usual.p50_ns), usual.of_count)
        } else {
            format!("{name} {}", ns_us(ns))
        }
    };
    let parts: Vec<String> = all.into_iter().filter(|(_, ns)| *ns > 0).map(span).collect();
    let causes: String =
        worst.causes.iter().map(|cause| format!("   - {}\n", why(cause))).collect();
    let causes = if causes.is_empty() {
        let thread_decides = lacks_sched && matches!(usual.span, "submission" | "post");
        let hint = if thread_decides && worst.call.is_some() { HINT } else { "" };
        format!("   - cause not known: {} took {} us{hint}\n", usual.span, ns_us(usual.ns))
    } else {
        causes
    };
    format!("{number}. {}\n   {}\n{causes}", title(worst), parts.join(", "))
}

fn title(worst: &Worst) -> String {
    let mut text = format!("{} us  {}", ns_us(worst.total_ns), worst.call.unwrap_or(worst.op));
    if worst.call.is_some_and(|call| call != worst.op) && worst.bytes > 0 {
        text += &format!(" ({})", worst.op);
    }
    if worst.bytes > 0 {
        text += &format!(" {}", size_text(worst.bytes));
    }
    text +=
        &format!(" on {} sector {} by {}", worst.device, worst.sector, who(&worst.comm, worst.pid));
    if worst.requests > 1 {
        text += &format!(", {} requests", worst.requests);
    }
    if worst.call.is_none() {
        text += &format!(", {}", behalf(worst.origin, worst.inode));
    }
    if let Some(class) = worst.class {
        text += &format!(", class {class}");
    }
    if worst.error != 0 {
        text += &format!(", failed with {}", std::io::Error::from_raw_os_error(-worst.error));
    }
    text + &format!(", at {} s", seconds(worst.at_ns))
}

/// A thread.
pub fn who(comm: &str, pid: u32) -> String {
    match (comm, pid) {
        ("", 0) => "an unknown thread".into(),
        ("", pid) => format!("thread {pid}"),
        (comm, pid) => format!("{comm} ({pid})"),
    }
}

fn behalf(origin: &str, inode: Option<u64>) -> String {
    let what = match origin {
        "io" => "for a program's call",
        "thread" => "no call seen",
        origin => origin,
    };
    inode.map_or(what.into(), |inode| format!("{what} of inode {inode}"))
}

fn why(cause: &Cause) -> String {
    let ns = ns_us(cause.ns());
    match cause {
        Cause::Behind { requests, longest, .. } => format!(
            "{ns} us in the block layer while the device had {}; longest: {}",
            count(*requests, "other request"),
            other(longest)
        ),
        Cause::Shared { requests, longest, .. } => format!(
            "{ns} us with the device together with {}; longest: {}",
            count(*requests, "other request"),
            other(longest)
        ),
        Cause::Flush { own: true, .. } => format!("{ns} us for its own flush"),
        Cause::Flush { requests, .. } => {
            format!("{ns} us while the device had {}", count(*requests, "flush"))
        }
        Cause::Discard { own: true, .. } => format!("{ns} us for its own discard"),
        Cause::Discard { requests, .. } => {
            format!("{ns} us while the device had {}", count(*requests, "discard"))
        }
        Cause::Requeued { times, .. } => {
            format!("{ns} us after the driver gave it back {}", count(*times, "time"))
        }
        Cause::Pieces { pieces, .. } => format!("{ns} us between its own {pieces} pieces"),
        Cause::Cut { requests, .. } => {
            format!(
                "{ns} us from the first to the last end of {requests} requests, for its bio was cut"
            )
        }
        Cause::Merged { bios, .. } => {
            format!("{ns} us until the last of {} was merged into it", count(*bios, "further bio"))
        }
        Cause::DeviceSlow { op, bytes, device_ns, p50_ns, of_count, others, .. } => format!(
            "{ns} us longer than usual with the device, for {} {}: {}, median {} of {of_count} alike, {}",
            if *op == "other" { "an" } else { "a" },
            what(op, *bytes),
            ns_us(*device_ns),
            ns_us(*p50_ns),
            match others {
                0 => "alone there".into(),
                others => format!("{} there too", count(*others, "other")),
            }
        ),
        Cause::TagWait { .. } => format!("{ns} us before it had a tag (or throttled)"),
        Cause::Journal { requests, .. } => {
            format!("{ns} us while the journal had {}", count(*requests, "request"))
        }
        Cause::Writeback { requests, .. } => {
            format!("{ns} us while writeback had {}", count(*requests, "request"))
        }
        Cause::Running { span, .. } => format!("{ns} us of {span} on a CPU"),
        Cause::CpuWait { span, times, longest, .. } => {
            format!("{ns} us {}", thread_words::cpu_wait(span, *times, longest))
        }
        Cause::Asleep { span, times, longest, .. } => {
            format!("{ns} us {}", thread_words::asleep(span, *times, longest))
        }
        Cause::DirtyThrottle { times, .. } => {
            format!("{ns} us {}", thread_words::dirty_throttle(*times))
        }
    }
}

fn what(op: &str, bytes: u64) -> String {
    match bytes {
        0 => op.into(),
        bytes => format!("{op} {}", size_text(bytes)),
    }
}

fn other(other: &Other) -> String {
    let pieces =
        if other.pieces > 1 { format!(", {} pieces", other.pieces) } else { String::new() };
    format!(
        "{} sector {} by {}, {}{pieces}, {} of its {} us",
        what(other.op, other.bytes),
        other.sector,
        who(&other.comm, other.pid),
        behalf(other.origin, other.inode),
        ns_us(other.overlap_ns),
        ns_us(other.device_ns)
    )
}

/// What was seen, what could not be matched, and what is not known.
pub fn account(record: &Record) -> String {
    let of = &record.account;
    let mut text = format!(
        "\nAccount\n{} events, {} lost; {} followed, {} at the edges of the trace, \
         {} hit by loss, {} unmatched\n",
        of.events,
        of.events_lost,
        count(of.matched, "request"),
        of.at_the_edges,
        of.hit_by_loss,
        of.unmatched
    );
    text += &format!(
        "{} without a request; {} left out because a part was not seen\n",
        count(of.calls_without_request, "call"),
        count(of.ios_incomplete, "I/O")
    );
    if of.events_skipped > 0 {
        text += &format!("passed over: {} of other kinds\n", count(of.events_skipped, "event"));
    }
    for one in of.unmatched_first.iter().take(LISTED_MAX) {
        let at = seconds(one.at_ns);
        text += &format!(
            "unmatched: {} on {} sector {} at {at} s: {}\n",
            one.op, one.device, one.sector, one.why
        );
    }
    text += &more(of.unmatched);
    for problem in of.unread.first.iter().take(LISTED_MAX) {
        text += &format!("not read: {problem}\n");
    }
    text += &more(of.unread.count);
    for missing in &record.missing {
        text += &format!("never seen: {}: {}\n", missing.event, missing.consequence);
    }
    let scope = &record.scope;
    if scope.ios_hidden + scope.requests_hidden > 0 {
        let ios = count(scope.ios_hidden, "I/O");
        let requests = count(scope.requests_hidden, "other request");
        text += &format!("not shown: {ios} and {requests} of others\n");
    }
    text
}

fn more(count: u64) -> String {
    match count.checked_sub(LISTED_MAX as u64) {
        Some(more) if more > 0 => format!("  and {more} more; --json lists them\n"),
        _ => String::new(),
    }
}

/// So many of something.
pub fn count(number: u64, one: &str) -> String {
    match (number, one.ends_with("sh")) {
        (1, _) => format!("1 {one}"),
        (number, true) => format!("{number} {one}es"),
        (number, false) => format!("{number} {one}s"),
    }
}

/// From ns, with one decimal.
pub fn ns_us(ns: u64) -> String {
    us(ns as f64)
}

/// As trace-cmd and perf print times.
fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / NS_PER_S, ns % NS_PER_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;

    fn longest() -> Box<Other> {
        Box::new(Other {
            op: "write",
            bytes: 524_288,
            sector: 8_192,
            pid: 55,
            comm: "kworker".into(),
            origin: "writeback",
            inode: Some(12),
            overlap_ns: 7_000 * US,
            device_ns: 8_500 * US,
            pieces: 2,
        })
    }

    #[test]
    fn each_cause_is_said_in_words_with_its_time() {
        let ns = 250 * US;
        for (cause, says) in [
            (
                Cause::Behind { ns: 7_503 * US, requests: 2, longest: longest() },
                "7503.0 us in the block layer while the device had 2 other requests; longest: \
                 write 512 KiB sector 8192 by kworker (55), writeback of inode 12, 2 pieces, \
                 7000.0 of its 8500.0 us",
            ),
            (
                Cause::Shared { ns, requests: 1, longest: longest() },
                "250.0 us with the device together with 1 other request; longest: \
                 write 512 KiB sector 8192 by kworker (55), writeback of inode 12, 2 pieces, \
                 7000.0 of its 8500.0 us",
            ),
            (Cause::Flush { ns, own: true, requests: 1 }, "250.0 us for its own flush"),
            (
                Cause::Flush { ns, own: false, requests: 2 },
                "250.0 us while the device had 2 flushes",
            ),
            (Cause::Discard { ns, own: true, requests: 1 }, "250.0 us for its own discard"),
            (
                Cause::Discard { ns, own: false, requests: 1 },
                "250.0 us while the device had 1 discard",
            ),
            (Cause::Requeued { ns, times: 2 }, "250.0 us after the driver gave it back 2 times"),
            (Cause::Pieces { ns, pieces: 4 }, "250.0 us between its own 4 pieces"),
            (
                Cause::Cut { ns, requests: 3 },
                "250.0 us from the first to the last end of 3 requests, for its bio was cut",
            ),
            (
                Cause::Merged { ns, bios: 1 },
                "250.0 us until the last of 1 further bio was merged into it",
            ),
            (
                Cause::DeviceSlow {
                    op: "read",
                    bytes: 4096,
                    ns,
                    device_ns: 340 * US,
                    p50_ns: 90 * US,
                    of_count: 21,
                    others: 1,
                },
                "250.0 us longer than usual with the device, for a read 4 KiB: 340.0, median 90.0 of 21 alike, \
                 1 other there too",
            ),
            (Cause::TagWait { ns }, "250.0 us before it had a tag (or throttled)"),
            (Cause::Journal { ns, requests: 2 }, "250.0 us while the journal had 2 requests"),
            (Cause::Writeback { ns, requests: 1 }, "250.0 us while writeback had 1 request"),
            (Cause::Running { ns, span: "post" }, "250.0 us of post on a CPU"),
            (
                Cause::DirtyThrottle { ns, times: 2 },
                "250.0 us asleep in balance_dirty_pages, because too much was dirty (2 pauses)",
            ),
        ] {
            assert_eq!(why(&cause), says);
        }
    }
}
