// SPDX-License-Identifier: MIT OR Apache-2.0
//! ftrace's text: the files `trace` and `trace_pipe`, and what `trace-cmd report` prints.
//!
//! A line is `COMM-PID [TGID] [CPU] FLAGS TIME: NAME: VALUES`; in the latency format the CPU's number and the
//! flags are one word, and `trace` counts µs from the first event. TGID and FLAGS may be missing.

use std::io::BufRead;

use super::text::scan::{Scan, quoted};
use super::text::{Grammar, Head, Reading, Text, cpus_in_brackets, syscall};
use crate::calls;
use crate::event::Comm;
use crate::sched::Context;

/// The events in ftrace's text.
pub fn read<'a>(reader: impl BufRead + 'a, file: &str) -> Text<'a> {
    Text::new(reader, file, Ftrace::default())
}

#[derive(Default)]
struct Ftrace {
    /// Events that were overwritten before the file was read, as its heading says; told with the first event.
    overwritten: u64,
}

impl Grammar for Ftrace {
    fn read(&mut self, line: &[u8]) -> Reading {
        match line {
            [] => Reading::Nothing,
            [b'#', ..] => self.heading(line),
            [b'C', b'P', b'U', b':', ..] => lost(line),
            [b'C', b'P', b'U', b' ', ..] | [b'c', b'p', b'u', b's', b'=', ..] => {
                report_heading(line)
            }
            [b'v', b'e', b'r', b's', b'i', b'o', b'n', b' ', b'=', ..] => Reading::Nothing,
            [b' ', b'=', b'>', ..] => Reading::Skipped { at: None },
            _ => event(line),
        }
    }
}

impl Ftrace {
    /// `# tracer: nop`, `# entries-in-buffer/entries-written: 130/8116   #P:2`,
    /// `##### CPU 1 buffer started ####`, or the names of columns.
    fn heading(&mut self, line: &[u8]) -> Reading {
        let mut scan = Scan::new(line);
        if scan.passes("# tracer: function_graph") {
            let why = "the function_graph tracer prints no such events: record with the tracer nop";
            return Reading::Stop(why.to_owned());
        }
        if scan.passes("# entries-in-buffer/entries-written: ") {
            return match overwritten(scan) {
                Ok(0) => Reading::Nothing,
                Ok(count) => {
                    self.overwritten = count;
                    Reading::Lost { cpu: None, count }
                }
                Err(why) => Reading::Problem(why),
            };
        }
        // Printed only if events were overwritten: those of this CPU begin here, later than others.
        if scan.passes("##### CPU ") && self.overwritten > 0 {
            return match scan.decimal("the number of a CPU") {
                Ok(cpu) => Reading::Lost { cpu: Some(cpu), count: 0 },
                Err(wrong) => Reading::Problem(wrong.to_string()),
            };
        }
        Reading::Nothing
    }
}

fn overwritten(mut scan: Scan<'_>) -> Result<u64, String> {
    let mut numbers = || {
        let kept: u64 = scan.decimal("a number of entries")?;
        scan.literal("/")?;
        let written: u64 = scan.decimal("a number of entries")?;
        Ok(written.saturating_sub(kept))
    };
    numbers().map_err(|wrong: super::text::scan::Wrong<'_>| wrong.to_string())
}

/// `CPU:1 [LOST 12 EVENTS]`, `CPU:1 [LOST EVENTS]`, and of trace-cmd `CPU:1 [12 EVENTS DROPPED]`,
/// `CPU:1 [EVENTS DROPPED]`
fn lost(line: &[u8]) -> Reading {
    let mut scan = Scan::new(line);
    let mut numbers = || {
        scan.literal("CPU:")?;
        let cpu = scan.decimal("the number of a CPU")?;
        scan.literal(" [")?;
        let dropped = !scan.passes("LOST ");
        if scan.passes("EVENTS") {
            scan.literal(if dropped { " DROPPED]" } else { "]" })?;
            return Ok((cpu, 0));
        }
        let count = scan.decimal("a number of events")?;
        scan.literal(if dropped { " EVENTS DROPPED]" } else { " EVENTS]" })?;
        scan.end()?;
        Ok((cpu, count))
    };
    match numbers() {
        Ok((cpu, count)) => Reading::Lost { cpu: Some(cpu), count },
        Err::<_, super::text::scan::Wrong<'_>>(wrong) => Reading::Problem(wrong.to_string()),
    }
}

/// `CPU 3 is empty` and `cpus=4` of trace-cmd.
fn report_heading(line: &[u8]) -> Reading {
    let mut scan = Scan::new(line);
    let cpu_is_empty = scan.passes("CPU ")
        && scan.decimal::<u32>("").is_ok()
        && scan.passes(" is empty")
        && scan.rest().is_empty();
    let mut scan = Scan::new(line);
    let cpus = scan.passes("cpus=") && scan.decimal::<u32>("").is_ok() && scan.rest().is_empty();
    if cpu_is_empty || cpus { Reading::Nothing } else { event(line) }
}

fn event(line: &[u8]) -> Reading {
    let Some((thread, cpu, context, mut scan)) = thread_and_cpu(line) else {
        return Reading::Problem(format!(
            "expected COMM-PID [CPU] TIME: EVENT at {}",
            quoted(line)
        ));
    };
    let time_ns = match time(&mut scan) {
        Ok(time_ns) => time_ns,
        Err(reading) => return reading,
    };
    let (comm, pid) = thread;
    let head = Head { time_ns, cpu, pid, comm, context };
    scan.spaces();
    named(&head, scan.rest())
}

/// `NAME: VALUES`, `sys_read(fd: 3, …)`, `sys_read -> 0x40`, or, of the function tracer, `name <-caller`.
fn named(head: &Head, text: &[u8]) -> Reading {
    let length = text.iter().take_while(|byte| !b":( ".contains(byte)).count();
    let (name, rest) = text.split_at(length);
    if name.is_empty() {
        return Reading::Problem(format!("expected the name of an event at {}", quoted(text)));
    }
    if let Some(values) = rest.strip_prefix(b":") {
        return head.reading(name, name, values);
    }
    let mut scan = Scan::new(rest);
    let is_enter = scan.passes("(");
    let call = name.strip_prefix(b"sys_");
    if !is_enter && !scan.passes(" -> ") {
        // A function has no such form as an event.
        return if rest.starts_with(b" <-") {
            head.skipped()
        } else {
            Reading::Problem(format!("expected EVENT: VALUES at {}", quoted(text)))
        };
    }
    let Some(events) = call.and_then(calls::by_name) else {
        return head.skipped();
    };
    let body = if is_enter {
        let arguments = scan.up_to_final(b')', "arguments and )");
        arguments.and_then(|arguments| syscall::enter(events, &mut Scan::new(arguments)))
    } else {
        syscall::exit(events, &mut scan)
    };
    match body {
        Ok(body) => Reading::Event(head.event(body)),
        Err(wrong) => Reading::Problem(format!("{}: {wrong}", name.escape_ascii())),
    }
}

/// Name and number of the thread, the CPU, what came over the thread, and the rest of the line.
type Where<'a> = ((Comm, u32), u32, Option<Context>, Scan<'a>);

/// `COMM-PID [TGID] [CPU]` or, in the latency format, `COMM-PID CPUFLAGS`; the time stands behind it. A name
/// can contain anything, even a bracket with a number: what stands before the CPU must be a PID.
fn thread_and_cpu(line: &[u8]) -> Option<Where<'_>> {
    for (before, cpu, scan) in cpus_in_brackets(line) {
        let (context, behind) = behind_flags(scan);
        let is_time = behind.rest().first().is_some_and(u8::is_ascii_digit);
        match thread(without_group(before)) {
            Some(thread) if is_time => return Some((thread, cpu, context, behind)),
            _ => {}
        }
    }
    latency_format(line)
}

/// `COMM-PID ` without ` (TGID) ` behind it.
fn without_group(text: &[u8]) -> &[u8] {
    let text = text.trim_ascii_end();
    let Some(inner) = text.strip_suffix(b")") else { return text };
    let is_group = |byte: &u8| byte.is_ascii_digit() || *byte == b'-' || *byte == b' ';
    let length = inner.iter().rev().take_while(|byte| is_group(byte)).count();
    match inner[..inner.len() - length].split_last() {
        Some((b'(', before)) => before,
        _ => text,
    }
}

/// `COMM-PID`; the name `<...>` means that none is known.
fn thread(text: &[u8]) -> Option<(Comm, u32)> {
    let text = text.trim_ascii();
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (before, digits) = text.split_at(text.len() - digits);
    let comm = before.strip_suffix(b"-")?;
    let pid = Scan::new(digits).decimal("").ok()?;
    match if comm.len() > 15 { behind_buffer(comm)? } else { comm } {
        b"<...>" => Some((Comm::default(), pid)),
        comm => Some((Comm::new(comm), pid)),
    }
}

/// trace-cmd prints the name of a buffer (`record -B`) or of one of several files before the thread's, which it
/// fills up to 16 letters: `buffer:               dd`.
fn behind_buffer(text: &[u8]) -> Option<&[u8]> {
    let (before, comm) = text.split_at(text.len().checked_sub(16)?);
    before.ends_with(b": ").then(|| comm.trim_ascii_start())
}

/// Passes ` d.h1. `, which is there unless the option `irq-info` is off.
fn behind_flags(mut scan: Scan<'_>) -> (Option<Context>, Scan<'_>) {
    scan.spaces();
    let mut behind = scan;
    match behind.until(b' ', "") {
        Ok(flags) if !flags.ends_with(b":") => {
            behind.spaces();
            (context(flags), behind)
        }
        _ => (None, scan),
    }
}

/// `d.h1.`: the third letter says what came over the thread.
fn context(flags: &[u8]) -> Option<Context> {
    match flags.get(2)? {
        b'.' => Some(Context::Thread),
        b's' => Some(Context::Softirq),
        b'h' | b'H' | b'z' | b'Z' => Some(Context::Interrupt),
        _ => None,
    }
}

/// `dd-3410      0d.h..  `
fn latency_format(line: &[u8]) -> Option<Where<'_>> {
    let dashes = line.iter().enumerate().filter(|(_, byte)| **byte == b'-').map(|(place, _)| place);
    for place in dashes.take(16) {
        let mut scan = Scan::new(&line[place + 1..]);
        if scan.decimal::<u32>("").is_err() || !scan.passes(" ") {
            continue;
        }
        let Some(thread) = thread(&line[..line.len() - scan.rest().len()]) else { continue };
        scan.spaces();
        let Ok(cpu) = scan.decimal("") else { continue };
        let Ok(flags) = scan.until(b' ', "") else { continue };
        if (4..=6).contains(&flags.len()) && !flags.contains(&b':') {
            scan.spaces();
            return Some((thread, cpu, context(flags), scan));
        }
    }
    None
}

/// `1245.183294:`, `1245.183294474:` or, in the latency format, `51192us+:`.
fn time(scan: &mut Scan<'_>) -> Result<u64, Reading> {
    let expected = "expected a time as SECONDS.DECIMALS: (6 or 9 decimals)";
    let problem =
        |scan: &Scan<'_>| Reading::Problem(format!("{expected} at {}", quoted(scan.rest())));
    let mut behind = *scan;
    let Ok(whole) = behind.decimal::<u64>("") else { return Err(problem(scan)) };
    let time_ns = if behind.passes("us") {
        // A mark of how long it was until the next event, or a space.
        let marked = behind.rest().get(1) == Some(&b':');
        *scan = Scan::new(behind.rest().get(usize::from(marked)..).unwrap_or_default());
        whole.checked_mul(1000)
    } else if behind.rest().first() == Some(&b':') {
        let why = format!(
            "the time {whole} counts events or cycles, not seconds: record with the trace clock mono"
        );
        return Err(Reading::Stop(why));
    } else {
        let decimals = seconds(&mut behind, whole);
        if decimals.is_some() {
            *scan = behind;
        }
        decimals
    };
    match time_ns {
        Some(time_ns) if scan.passes(": ") => Ok(time_ns),
        _ => Err(problem(scan)),
    }
}

/// The ns of `whole` seconds and `.DECIMALS`, which is passed.
pub(super) fn seconds(scan: &mut Scan<'_>, whole: u64) -> Option<u64> {
    if !scan.passes(".") {
        return None;
    }
    let length_before = scan.rest().len();
    let decimals: u64 = scan.decimal("").ok()?;
    let fraction_ns = match length_before - scan.rest().len() {
        6 => decimals * 1000,
        9 => decimals,
        _ => return None,
    };
    whole.checked_mul(1_000_000_000)?.checked_add(fraction_ns)
}
