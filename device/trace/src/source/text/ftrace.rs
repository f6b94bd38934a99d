// SPDX-License-Identifier: MIT OR Apache-2.0
//! ftrace's text: the files `trace` and `trace_pipe`, and what `trace-cmd report` prints.
//!
//! A line is `COMM-PID [TGID] [CPU] FLAGS TIME: NAME: VALUES`; in the latency format the CPU's number and the
//! flags are one word, and `trace` counts µs from the first event. TGID and FLAGS may be missing.

use std::borrow::Cow;

use super::pattern::{LazyRegex, regex};
use super::{Head, Line, TIME, found, number};

/// trace-cmd prints the name of a buffer (`record -B`) or of one of several files before the thread's: `buffer:      dd`.
const THREAD: &str = r" *(?:.*?: +)??(?<comm>.{0,15}?)-(?<pid>\d+) *(?:\([ \d-]+\) *)?";
/// The flags are there unless the option `irq-info` is off.
const CPU: &str = r"\[(?<cpu>\d+)\] +(?:(?<flags>[^ ]*[^ :]) +)?";

static HEAD: LazyRegex = LazyRegex::new(|| regex(&format!(r"{THREAD}{CPU}{TIME}: +(?<event>.*)")));
static HEAD_BUT_TIME: LazyRegex = LazyRegex::new(|| regex(&format!(r"{THREAD}{CPU}(?<time>\d.*)")));
/// A mark of how long it was until the next event, or a space, stands behind the time.
static LATENCY_HEAD: LazyRegex = LazyRegex::new(|| {
    let cpu = r" (?<cpu>\d+)(?<flags>[^ :\d][^ :]{3,5}) +";
    regex(&format!(r"{THREAD}{cpu}(?:{TIME}|(?<us>\d+)us.?): +(?<event>.*)"))
});
static OVERWRITTEN: LazyRegex =
    LazyRegex::new(|| regex(r"# entries-in-buffer/entries-written: (?<kept>\d+)/(?<written>\d+)"));
static CPU_BEGINS: LazyRegex = LazyRegex::new(|| regex(r"##### CPU (?<cpu>\d+) buffer started"));
/// `CPU:1 [LOST 12 EVENTS]`, `CPU:1 [LOST EVENTS]`, and of trace-cmd `CPU:1 [12 EVENTS DROPPED]`, `CPU:1 [EVENTS DROPPED]`
static LOST: LazyRegex = LazyRegex::new(|| {
    regex(
        r"CPU:(?<cpu>\d+) \[(?:LOST (?:(?<lost>\d+) )?EVENTS|(?:(?<dropped>\d+) )?EVENTS DROPPED)\] *\z",
    )
});
/// Of trace-cmd.
static HEADING: LazyRegex =
    LazyRegex::new(|| regex(r"(?:CPU \d+ is empty\z|cpus=\d+\z|version =|\z)"));

/// What `line` says. `overwritten`: the heading said that events were overwritten before the file was read.
pub fn read<'a>(line: &'a [u8], overwritten: &mut bool) -> Result<Line<'a>, String> {
    match line {
        [b'#', ..] => heading(line, overwritten),
        [b'C', b'P', b'U', b':', ..] => {
            let expected = || format!("expected CPU:NUMBER [LOST COUNT EVENTS] {}", found(line));
            let lost = LOST.captures(line).ok_or_else(expected)?;
            let count = number(&lost, "lost").or_else(|| number(&lost, "dropped")).unwrap_or(0);
            Ok(Line::Lost { cpu: number(&lost, "cpu"), count })
        }
        [b' ', b'=', b'>', ..] => Ok(Line::Skipped),
        _ => match HEAD.captures(line).or_else(|| LATENCY_HEAD.captures(line)) {
            Some(found) => {
                named(Head::of(&found)?, found.name("event").map_or(b"", |m| m.as_bytes()))
            }
            None if HEADING.is_match(line) => Ok(Line::Nothing),
            None => no_head(line),
        },
    }
}

fn heading<'a>(line: &[u8], overwritten: &mut bool) -> Result<Line<'a>, String> {
    if line.starts_with(b"# tracer: function_graph") {
        let why = "the function_graph tracer prints no such events: record with the tracer nop";
        return Ok(Line::Stop(why.to_owned()));
    }
    if line.starts_with(b"# entries-in-buffer/entries-written: ") {
        let numbers = OVERWRITTEN.captures(line);
        let count = |found| Some((number(&found, "written")?, number(&found, "kept")?));
        let Some((written, kept)) = numbers.and_then(count) else {
            return Err(format!("expected two numbers of entries {}", found(line)));
        };
        let count: u64 = u64::saturating_sub(written, kept);
        *overwritten = count > 0;
        return Ok(if count > 0 { Line::Lost { cpu: None, count } } else { Line::Nothing });
    }
    // Printed only if events were overwritten: those of this CPU begin here, later than others.
    Ok(match CPU_BEGINS.captures(line) {
        Some(found) if *overwritten => Line::Lost { cpu: number(&found, "cpu"), count: 0 },
        _ => Line::Nothing,
    })
}

/// Why the head is none.
fn no_head<'a>(line: &[u8]) -> Result<Line<'a>, String> {
    let Some(time) = HEAD_BUT_TIME.captures(line).and_then(|found| found.name("time")) else {
        return Err(format!("expected COMM-PID [CPU] TIME: EVENT {}", found(line)));
    };
    let time = time.as_bytes();
    let digits = time.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if time[digits..].starts_with(b": ") {
        return Ok(Line::Stop(format!(
            "the time {} counts events or cycles, not seconds: record with the trace clock mono",
            time[..digits].escape_ascii()
        )));
    }
    Err(format!("expected a time as SECONDS.DECIMALS: (6 or 9 decimals) {}", found(time)))
}

/// `NAME: VALUES`, `sys_read(fd: 3, …)`, `sys_read -> 0x40`, or, of the function tracer, `name <-caller`.
fn named(head: Head, text: &[u8]) -> Result<Line<'_>, String> {
    let length = text.iter().take_while(|byte| !b":( ".contains(byte)).count();
    let (name, values) = text.split_at(length);
    let of_call =
        |kind: &[u8]| name.strip_prefix(b"sys_").map(|call| Cow::Owned([kind, call].concat()));
    let event = match values {
        _ if name.is_empty() => {
            return Err(format!("expected the name of an event {}", found(text)));
        }
        [b':', ..] => Some(Cow::Borrowed(name)),
        [b'(', ..] => of_call(b"sys_enter_"),
        [b' ', b'-', b'>', ..] => of_call(b"sys_exit_"),
        [b' ', b'<', b'-', ..] => None,
        _ => return Err(format!("expected EVENT: VALUES {}", found(text))),
    };
    // No event is called nothing.
    let event = event.unwrap_or_default();
    let values = values.strip_prefix(b":").unwrap_or(values);
    Ok(Line::Event { head, name: event, values })
}
