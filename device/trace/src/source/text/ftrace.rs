// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads ftrace's text for [`super::Text`]: the files `trace` and `trace_pipe`, and the output of
//! `trace-cmd report`.
//!
//! A line is `COMM-PID [TGID] [CPU] FLAGS TIME: NAME: VALUES`. In the latency format the CPU's
//! number and the flags are one word, and `trace` counts µs from the first event. TGID and FLAGS
//! may be missing.

use std::borrow::Cow;

use super::scan::{NAME_BYTES_MAX, Scan, found, number};
use super::{Head, Line};

/// Parses one line. `overwritten`: the heading said that events were overwritten before the file
/// was read.
pub fn read<'a>(line: &'a [u8], overwritten: &mut bool) -> Result<Line<'a>, String> {
    match line {
        [b'#', ..] => heading(line, overwritten),
        [b'C', b'P', b'U', b':', ..] => {
            let expected = || format!("expected CPU:NUMBER [LOST COUNT EVENTS] {}", found(line));
            lost(line).ok_or_else(expected)
        }
        _ => match head(line) {
            Ok((head, event)) => named(head, event),
            Err(_) if is_heading(line) => Ok(Line::Nothing),
            // A line of a stack trace.
            Err(_) if line.trim_ascii_start().starts_with(b"=>") => Ok(Line::Skipped),
            Err(at_time) => no_head(line, at_time),
        },
    }
}

/// Whether the line belongs to the heading that trace-cmd prints.
fn is_heading(line: &[u8]) -> bool {
    let is_count = |count: &[u8]| number::<u32>(count).is_some();
    let of_cpu = line.strip_prefix(b"CPU ").and_then(|rest| rest.strip_suffix(b" is empty"));
    line.is_empty()
        || line.starts_with(b"version =")
        || line.strip_prefix(b"cpus=").or(of_cpu).is_some_and(is_count)
}

fn heading<'a>(line: &[u8], overwritten: &mut bool) -> Result<Line<'a>, String> {
    if line.starts_with(b"# tracer: function_graph") {
        let why = "the function_graph tracer prints no such events: record with the tracer nop";
        return Ok(Line::Stop(why.to_owned()));
    }
    if let Some(numbers) = line.strip_prefix(b"# entries-in-buffer/entries-written: ") {
        let expected = || format!("expected two numbers of entries {}", found(line));
        let count = overwritten_count(numbers).ok_or_else(expected)?;
        *overwritten = count > 0;
        return Ok(if count > 0 { Line::Lost { cpu: None, count } } else { Line::Nothing });
    }
    // Printed only if events were overwritten: the events of this CPU begin here, later than those
    // of other CPUs.
    let begins = line.strip_prefix(b"##### CPU ").filter(|_| *overwritten);
    let cpu = begins.and_then(|begins| Scan(begins).number());
    Ok(cpu.map_or(Line::Nothing, |cpu| Line::Lost { cpu: Some(cpu), count: 0 }))
}

/// The number of overwritten events, from `KEPT/WRITTEN`.
fn overwritten_count(numbers: &[u8]) -> Option<u64> {
    let mut scan = Scan(numbers);
    let kept = scan.number()?;
    scan.text(b"/")?;
    Some(scan.number::<u64>()?.saturating_sub(kept))
}

/// `CPU:1 [LOST 12 EVENTS]`, `CPU:1 [LOST EVENTS]`, and from trace-cmd `CPU:1 [12 EVENTS DROPPED]`,
/// `CPU:1 [EVENTS DROPPED]`
fn lost(line: &[u8]) -> Option<Line<'_>> {
    let mut scan = Scan(line);
    scan.text(b"CPU:")?;
    let cpu = Some(scan.number()?);
    scan.text(b" [")?;
    let count = match scan.0.trim_ascii_end().strip_suffix(b"]")? {
        b"LOST EVENTS" | b"EVENTS DROPPED" => 0,
        text => {
            let lost = text.strip_prefix(b"LOST ").and_then(|rest| rest.strip_suffix(b" EVENTS"));
            number(lost.or_else(|| text.strip_suffix(b" EVENTS DROPPED"))?)?
        }
    };
    Some(Line::Lost { cpu, count })
}

/// The head of a line and the event after it. On failure: the text at the place of the time, if
/// everything before it could be read.
fn head(line: &[u8]) -> Result<(Head, &[u8]), Option<&[u8]>> {
    let mut start = Scan(line);
    start.spaces();
    let mut at_time = None;
    let mut found = head_from(start.0, &mut at_time);
    // trace-cmd prints the name of a buffer (`record -B`) or of one of several files before the
    // thread's name: `buffer:      dd`.
    let mut rest = start.0;
    while found.is_none() {
        let Some(colon) = rest.windows(2).position(|pair| pair == b": ") else { break };
        rest = rest[colon + 1..].trim_ascii_start();
        found = head_from(rest, &mut at_time);
    }
    found.ok_or(at_time)
}

/// A thread's name may contain `-`. It ends before the first `-` with which the rest of the line
/// can be read.
fn head_from<'a>(text: &'a [u8], at_time: &mut Option<&'a [u8]>) -> Option<(Head, &'a [u8])> {
    let longest = text.len().min(NAME_BYTES_MAX + 1);
    (0..longest).filter(|end| text[*end] == b'-').find_map(|end| {
        let mut scan = Scan(&text[end + 1..]);
        let pid = scan.number()?;
        let gap = scan.spaces() > 0;
        let (cpu, flags, time_ns) = match scan.0 {
            [b'[' | b'(', ..] => at_cpu(&mut scan, at_time)?,
            _ if gap => at_latency(&mut scan)?,
            _ => return None,
        };
        let comm = Some(&text[..end]).filter(|comm| *comm != b"<...>").unwrap_or_default();
        Some((Head::new(time_ns, cpu, pid, comm, flags), scan.0))
    })
}

/// `(TGID) [CPU] FLAGS TIME: `. The flags are there unless the option `irq-info` is off.
fn at_cpu<'a>(scan: &mut Scan<'a>, at_time: &mut Option<&'a [u8]>) -> Option<(u32, &'a [u8], u64)> {
    if scan.text(b"(").is_some() {
        scan.while_is(|byte| matches!(byte, b' ' | b'-' | b'0'..=b'9'));
        scan.text(b")")?;
        scan.spaces();
    }
    scan.text(b"[")?;
    let cpu = scan.number()?;
    scan.text(b"]")?;
    scan.gap()?;
    let mut behind = *scan;
    let mut flags = behind.while_is(|byte| byte != b' ');
    if flags.last().is_none_or(|last| *last == b':') || behind.gap().is_none() {
        flags = b"";
    } else {
        *scan = behind;
    }
    let time = scan.0;
    let time_ns = scan.time_ns();
    if time_ns.is_none() && time.first().is_some_and(u8::is_ascii_digit) {
        at_time.get_or_insert(time);
    }
    Some((cpu, flags, time_ns?))
}

/// `CPUFLAGS TIME: ` or `CPUFLAGS TIMEus : `. A space or a mark for the delay until the next event
/// follows the time.
fn at_latency<'a>(scan: &mut Scan<'a>) -> Option<(u32, &'a [u8], u64)> {
    let cpu = scan.number()?;
    let flags = scan.while_is(|byte| !matches!(byte, b' ' | b':'));
    matches!(flags.len(), 4..=6).then_some(())?;
    scan.gap()?;
    let mut in_us = *scan;
    let us: Option<u64> = in_us.number();
    if in_us.text(b"us").is_none() {
        return Some((cpu, flags, scan.time_ns()?));
    }
    if in_us.text(b":").is_none() {
        in_us = Scan(in_us.0.get(1..)?);
        in_us.text(b":")?;
    }
    in_us.gap()?;
    *scan = in_us;
    Some((cpu, flags, us?.checked_mul(1000)?))
}

/// The reason why a line has no readable head.
fn no_head<'a>(line: &[u8], at_time: Option<&[u8]>) -> Result<Line<'a>, String> {
    let Some(time) = at_time else {
        return Err(format!("expected COMM-PID [CPU] TIME: EVENT {}", found(line)));
    };
    let digits = time.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if time[digits..].starts_with(b": ") {
        return Ok(Line::Stop(format!(
            "the time {} has no decimals: it is cut, or counts events or cycles (record with the trace clock mono)",
            time[..digits].escape_ascii()
        )));
    }
    Err(format!("expected a time as SECONDS.DECIMALS: (6 or 9 decimals) {}", found(time)))
}

/// Parses `NAME: VALUES`, `sys_read(fd: 3, …)`, `sys_read -> 0x40`, or the function tracer's `name
/// <-caller`.
fn named(head: Head, text: &[u8]) -> Result<Line<'_>, String> {
    if text.starts_with(b"<stack trace>") || text.starts_with(b"<user stack trace>") {
        return Ok(Line::Skipped);
    }
    let length = text.iter().take_while(|byte| !b":( ".contains(byte)).count();
    let (name, values) = text.split_at(length);
    // An empty name is the name of no event.
    let of_call = |kind: &[u8]| {
        name.strip_prefix(b"sys_").map_or_else(Vec::new, |call| [kind, call].concat())
    };
    let name = match values {
        _ if name.is_empty() => {
            return Err(format!("expected the name of an event {}", found(text)));
        }
        [b':', ..] => Cow::Borrowed(name),
        [b'(', ..] => of_call(b"sys_enter_").into(),
        [b' ', b'-', b'>', ..] => of_call(b"sys_exit_").into(),
        [b' ', b'<', b'-', ..] => Cow::default(),
        _ => return Err(format!("expected EVENT: VALUES {}", found(text))),
    };
    let values = values.strip_prefix(b":").unwrap_or(values);
    Ok(Line::Event { head, name, values })
}
