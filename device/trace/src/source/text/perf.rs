// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `perf script` prints: with its default fields for tracepoints, or with
//! `-F comm,pid,tid,cpu,time,event,trace`; with or without `--ns`.
//!
//! A line is `COMM TID [CPU] TIME: SYSTEM:NAME: VALUES`, or `PID/TID` for TID.

use super::pattern::{LazyRegex, regex};
use super::{Head, Line, TIME, found};

const HEAD_BUT_TIME: &str = r" *(?<comm>.{0,15}?) +(?:\d+/)?(?<pid>\d+) *\[(?<cpu>\d+)\] +";

static HEAD: LazyRegex = LazyRegex::new(|| regex(&format!("{HEAD_BUT_TIME}{TIME}: +(?<event>.*)")));
static WITHOUT_TIME: LazyRegex = LazyRegex::new(|| regex(HEAD_BUT_TIME));
/// Of perf itself: `PERF_RECORD_LOST lost 12` and others, which it prints if asked to.
static EVENT: LazyRegex =
    LazyRegex::new(|| regex(r"(?:\w+:(?<name>\w+):|(?<own>PERF_RECORD_\w+))(?<values>.*)"));

pub fn read(line: &[u8]) -> Result<Line<'_>, String> {
    match line {
        [] | [b'#', ..] => return Ok(Line::Nothing),
        // perf indents the calls of a stack with a tab or more than a name is wide.
        [b'\t', ..] => return Ok(Line::Skipped),
        _ => {}
    }
    let Some(captures) = HEAD.captures(line) else { return Err(no_head(line)) };
    let text = captures.name("event").map_or(&b""[..], |event| event.as_bytes());
    let event = EVENT.captures(text);
    let event = event.ok_or_else(|| format!("expected SYSTEM:EVENT: VALUES {}", found(text)))?;
    let part = |name| event.name(name).map(|part| part.as_bytes());
    let name = part("name").or(part("own")).unwrap_or_default();
    let values = part("values").unwrap_or_default();
    Ok(Line::Event { head: Head::of(&captures)?, name: name.into(), values })
}

fn no_head(line: &[u8]) -> String {
    match WITHOUT_TIME.find(line) {
        Some(head) => format!(
            "expected a time as SECONDS.DECIMALS: (6 or 9 decimals; LC_ALL=C makes perf write them with a point) {}",
            found(&line[head.end()..])
        ),
        None => format!(
            "expected COMM TID [CPU] TIME: EVENT {} (perf script -F comm,tid,cpu,time,event,trace)",
            found(line)
        ),
    }
}
