// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the output of `perf script` for [`super::Text`]: with its default fields for tracepoints,
//! or with `-F comm,pid,tid,cpu,time,event,trace`; with or without `--ns`.
//!
//! A line is `COMM TID [CPU] TIME: SYSTEM:NAME: VALUES`, with `TID` or `PID/TID`. The TID is -1
//! once a thread has exited.

use super::scan::{NAME_BYTES_MAX, Scan, found, number};
use super::{Head, Line};

pub fn read(line: &[u8]) -> Result<Line<'_>, String> {
    match line {
        [] | [b'#', ..] => return Ok(Line::Nothing),
        // A stack trace. perf indents its lines with a tab, or by more than the width of a name.
        [b'\t', ..] => return Ok(Line::Skipped),
        _ => {}
    }
    let (head, text) = head(line)?;
    let (name, values) =
        event(text).ok_or_else(|| format!("expected SYSTEM:EVENT: VALUES {}", found(text)))?;
    Ok(Line::Event { head, name: name.into(), values })
}

/// The head of a line and the event behind it.
fn head(line: &[u8]) -> Result<(Head, &[u8]), String> {
    let mut start = Scan(line);
    start.spaces();
    let text = start.0;
    let mut at_time = None;
    let longest = text.len().min(NAME_BYTES_MAX + 1);
    for end in (0..longest).filter(|end| text[*end] == b' ') {
        let mut scan = Scan(&text[end..]);
        let Some((pid, cpu)) = place(&mut scan) else { continue };
        let time = scan.0;
        if let Some(time_ns) = scan.time_ns() {
            let comm = &text[..end];
            let comm = if comm.first() == Some(&b':') && comm[1..] == *pid { b"" } else { comm };
            // The number of a thread that has exited is unknown.
            let pid = number(pid).unwrap_or(0);
            return Ok((Head::new(time_ns, cpu, pid, comm, b""), scan.0));
        }
        at_time.get_or_insert(time);
    }
    Err(match at_time {
        Some(time) => format!(
            "expected a time as SECONDS.DECIMALS: (6 or 9 decimals; LC_ALL=C makes perf write them with a point) {}",
            found(time)
        ),
        None => format!(
            "expected COMM TID [CPU] TIME: EVENT {} (perf script -F comm,tid,cpu,time,event,trace)",
            found(line)
        ),
    })
}

/// ` TID [CPU] ` or ` PID/TID [CPU] `: the thread's number, and the CPU.
fn place<'a>(scan: &mut Scan<'a>) -> Option<(&'a [u8], u32)> {
    scan.gap()?;
    let mut tid = thread(scan)?;
    if scan.text(b"/").is_some() {
        tid = thread(scan)?;
    }
    scan.spaces();
    scan.text(b"[")?;
    let cpu = scan.number()?;
    scan.text(b"]")?;
    scan.gap()?;
    Some((tid, cpu))
}

fn thread<'a>(scan: &mut Scan<'a>) -> Option<&'a [u8]> {
    if scan.text(b"-1").is_some() {
        return Some(b"-1");
    }
    let digits = scan.while_is(|byte| byte.is_ascii_digit());
    number::<u32>(digits).map(|_| digits)
}

/// The event's name without its system, and the values. On request perf also prints records of its
/// own, such as `PERF_RECORD_LOST lost 12`.
fn event(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut scan = Scan(text);
    let mut name = scan.while_is(is_word);
    if !name.starts_with(b"PERF_RECORD_") {
        scan.text(b":")?;
        name = scan.while_is(is_word);
        scan.text(b":")?;
    }
    (!name.is_empty()).then_some((name, scan.0))
}
