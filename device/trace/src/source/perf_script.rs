// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `perf script` prints: with its default fields for tracepoints, or with
//! `-F comm,pid,tid,cpu,time,event,trace`; with or without `--ns`.
//!
//! A line is `COMM TID [CPU] TIME: SYSTEM:NAME: VALUES`, or `PID/TID` for TID.

use std::io::BufRead;

use super::ftrace_text::seconds;
use super::text::scan::{Scan, quoted};
use super::text::{Grammar, Head, Reading, Text, cpus_in_brackets};
use crate::event::Comm;

/// The events in perf's text.
pub fn read<'a>(reader: impl BufRead + 'a, file: &str) -> Text<'a> {
    Text::new(reader, file, PerfScript)
}

struct PerfScript;

impl Grammar for PerfScript {
    fn read(&mut self, line: &[u8]) -> Reading {
        match line {
            [] | [b'#', ..] => Reading::Nothing,
            // perf indents the calls of a stack with a tab or more than a name is wide.
            [b'\t', ..] => Reading::Skipped { at: None },
            _ => event(line),
        }
    }
}

fn event(line: &[u8]) -> Reading {
    let (head, text) = match head(line) {
        Ok(found) => found,
        Err(problem) => return Reading::Problem(problem),
    };
    if let Some(record) = text.strip_prefix(b"PERF_RECORD_") {
        return own_record(&head, record);
    }
    let mut parts = text.splitn(3, |byte| *byte == b':');
    let (Some(system), Some(name), Some(values)) = (parts.next(), parts.next(), parts.next())
    else {
        return Reading::Problem(format!("expected SYSTEM:EVENT: VALUES at {}", quoted(text)));
    };
    let is_word = |part: &[u8]| {
        !part.is_empty() && part.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    };
    if !is_word(system) || !is_word(name) {
        return Reading::Problem(format!("expected SYSTEM:EVENT: VALUES at {}", quoted(text)));
    }
    head.reading(&text[..system.len() + 1 + name.len()], name, values)
}

/// `LOST lost 12` and others, which perf prints if asked to.
fn own_record(head: &Head, record: &[u8]) -> Reading {
    let mut scan = Scan::new(record);
    if scan.passes("LOST lost ") {
        return match scan.decimal("a number of events") {
            Ok(count) => head.lost(count),
            Err(wrong) => Reading::Problem(wrong.to_string()),
        };
    }
    head.skipped()
}

/// `COMM TID [CPU] TIME: `, and what stands behind it. The name of the thread can contain anything: what stands
/// before the CPU must be a number, and what stands behind it a time.
fn head(line: &[u8]) -> Result<(Head, &[u8]), String> {
    let mut time_is_wrong = None;
    for (before, cpu, mut scan) in cpus_in_brackets(line) {
        let Some((comm, pid)) = thread(before) else { continue };
        scan.spaces();
        match time_ns(&mut scan) {
            Some(time_ns) => {
                return Ok((Head { time_ns, cpu, pid, comm, context: None }, scan.rest()));
            }
            None => time_is_wrong = time_is_wrong.or(Some(scan.rest())),
        }
    }
    Err(match time_is_wrong {
        Some(rest) => format!(
            "expected a time as SECONDS.DECIMALS: (6 or 9 decimals; LC_ALL=C makes perf write them \
             with a point) at {}",
            quoted(rest)
        ),
        None => format!(
            "expected COMM TID [CPU] TIME: EVENT at {} (perf script -F comm,tid,cpu,time,event,trace)",
            quoted(line)
        ),
    })
}

/// `1245.183294: ` and the spaces behind it.
fn time_ns(scan: &mut Scan<'_>) -> Option<u64> {
    let mut behind = *scan;
    let whole = behind.decimal("").ok()?;
    let time_ns = seconds(&mut behind, whole)?;
    if !behind.passes(": ") {
        return None;
    }
    behind.spaces();
    *scan = behind;
    Some(time_ns)
}

/// `COMM TID` or `COMM PID/TID`; `:TID` for COMM means that none is known.
fn thread(text: &[u8]) -> Option<(Comm, u32)> {
    let text = text.trim_ascii();
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (mut before, digits) = text.split_at(text.len() - digits);
    let pid = Scan::new(digits).decimal("").ok()?;
    if let Some(group) = before.strip_suffix(b"/") {
        let digits = group.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        before = &group[..group.len() - digits];
    }
    if !before.ends_with(b" ") {
        return None;
    }
    let comm = before.trim_ascii();
    let unknown = comm.strip_prefix(b":").is_some_and(|rest| rest == digits);
    match comm {
        _ if unknown => Some((Comm::default(), pid)),
        _ if comm.len() <= 15 => Some((Comm::new(comm), pid)),
        _ => None,
    }
}
