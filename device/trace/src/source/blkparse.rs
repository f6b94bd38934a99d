// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `blkparse` prints with its own format (no `-f`).
//!
//! A line is `MAJOR,MINOR CPU SEQUENCE TIME PID ACTION RWBS VALUES`. Times count from the first event.

use std::io::BufRead;

use super::ftrace_text::seconds;
use super::rwbs;
use super::text::body::{self, Body, block};
use super::text::scan::{Parsed, Scan, quoted};
use super::text::{Grammar, Head, Reading, Text};
use crate::event::{Comm, Dev, EventKind, Extent, Op, OpKind};

/// The events in blkparse's text.
pub fn read<'a>(reader: impl BufRead + 'a, file: &str) -> Text<'a> {
    Text::new(reader, file, Blkparse)
}

struct Blkparse;

/// How the lines of the summary begin, which stands behind the events.
const SUMMARY: [&[u8]; 9] = [
    b"CPU",
    b"Total (",
    b" Read",
    b" PC Read",
    b" IO unplugs:",
    b"Throughput (",
    b"Events (",
    b"Input file ",
    b"Trace started at ",
];

impl Grammar for Blkparse {
    fn read<'a>(&mut self, line: &'a [u8]) -> Reading<'a> {
        let text = line.trim_ascii_start();
        if text.first().is_some_and(u8::is_ascii_digit) {
            return match event(text) {
                Ok(reading) => reading,
                Err(wrong) => Reading::Problem(wrong.to_string()),
            };
        }
        if line.is_empty() || SUMMARY.iter().any(|start| line.starts_with(start)) {
            return Reading::Nothing;
        }
        if let Some(rest) = line.strip_prefix(b"Skips: ") {
            return skips(Scan::new(rest));
        }
        Reading::Problem(format!(
            "expected MAJOR,MINOR CPU SEQUENCE TIME PID ACTION RWBS at {}",
            quoted(line)
        ))
    }
}

/// `2 forward (17 -   0.1%)`: 17 events are missing somewhere.
fn skips(mut scan: Scan<'_>) -> Reading<'_> {
    let mut missing = || {
        scan.decimal::<u64>("a number of skips")?;
        scan.literal(" forward (")?;
        scan.spaces();
        let count = scan.decimal("a number of events")?;
        scan.literal(" -")?;
        Ok(count)
    };
    match missing() {
        Ok(0) => Reading::Nothing,
        Ok(count) => Reading::Lost { cpu: None, count },
        Err::<_, super::text::scan::Wrong<'_>>(wrong) => Reading::Problem(wrong.to_string()),
    }
}

fn event(line: &[u8]) -> Parsed<'_, Reading<'_>> {
    let mut scan = Scan::new(line);
    let dev = body::dev(&mut scan, ",")?;
    let cpu = word(&mut scan, |scan| scan.decimal("the number of a CPU"))?;
    word(&mut scan, |scan| scan.decimal::<u64>("a sequence number"))?;
    let time_ns = word(&mut scan, time_ns)?;
    let pid = word(&mut scan, |scan| scan.decimal("a process"))?;
    let action = word(&mut scan, |scan| scan.word("an action"))?;
    if let b"B" | b"S" | b"m" = action {
        let head = Head { time_ns, cpu, pid, comm: Comm::default(), context: None };
        return Ok(head.skipped(action));
    }
    let line = Line { dev, op: word(&mut scan, operation)? };
    scan.spaces();
    let Body { what, comm } = match action {
        b"Q" => line.bio(&mut scan, EventKind::BioQueue)?,
        b"G" => line.bio(&mut scan, EventKind::GetRequest)?,
        b"M" => line.bio(&mut scan, EventKind::BackMerge)?,
        b"F" => line.bio(&mut scan, EventKind::FrontMerge)?,
        b"I" => line.bio(&mut scan, EventKind::Insert)?,
        b"D" => line.bio(&mut scan, EventKind::Issue)?,
        b"R" => line.ended(&mut scan, |extent, _| EventKind::Requeue(extent))?,
        b"C" => line.ended(&mut scan, |extent, error| EventKind::Complete { extent, error })?,
        b"A" => line.remap(&mut scan)?,
        b"X" => line.split(&mut scan)?,
        b"P" => block::plug(&mut scan)?,
        b"U" | b"UT" | b"T" => block::unplug(&mut scan)?,
        _ => return Scan::new(action).wrong("an action (one of QGMFIDRCAXPUT)"),
    };
    Ok(Reading::Event(Head { time_ns, cpu, pid, comm, context: None }.event(what.into())))
}

/// A value between spaces; there is at least one before it.
fn word<'a, T>(scan: &mut Scan<'a>, value: fn(&mut Scan<'a>) -> Parsed<'a, T>) -> Parsed<'a, T> {
    scan.literal(" ")?;
    scan.spaces();
    value(scan)
}

fn time_ns<'a>(scan: &mut Scan<'a>) -> Parsed<'a, u64> {
    let mut behind = *scan;
    let whole = behind.decimal("a time as SECONDS.NANOSECONDS")?;
    match seconds(&mut behind, whole) {
        Some(time_ns) => {
            *scan = behind;
            Ok(time_ns)
        }
        None => scan.wrong("a time as SECONDS.NANOSECONDS"),
    }
}

/// blkparse calls a flush without data `FN`.
fn operation<'a>(scan: &mut Scan<'a>) -> Parsed<'a, Op> {
    let expected = "an operation in capital letters";
    let before = *scan;
    let letters = scan.word(expected)?;
    if !letters.iter().all(u8::is_ascii_uppercase) {
        return before.wrong(expected);
    }
    let op = rwbs::parse(letters);
    let is_flush = op.preflush && op.kind == OpKind::Other;
    Ok(if is_flush { Op { kind: OpKind::Flush, ..op } } else { op })
}

/// What the beginning of a line says.
struct Line {
    dev: Dev,
    op: Op,
}

impl Line {
    fn extent(&self, sector: u64, sectors: u32) -> Extent {
        Extent { dev: self.dev, sector, sectors, op: self.op, priority: None }
    }

    /// `2048 + 8 [comm]`; `[comm]` without data; `36 (12 00 ..) [comm]` of a passthrough command of 36 bytes.
    fn bio<'a>(&self, scan: &mut Scan<'a>, what: fn(Extent) -> EventKind) -> Parsed<'a, Body> {
        let mut extent = self.extent(0, 0);
        if scan.rest().first().is_some_and(u8::is_ascii_digit) {
            extent.sector = scan.decimal("a sector")?;
            scan.literal(" ")?;
            if scan.passes("+ ") {
                extent.sectors = scan.decimal("a number of sectors")?;
                scan.literal(" ")?;
            } else {
                extent = passthrough(extent);
            }
        }
        parenthesis(scan)?;
        scan.literal("[")?;
        Ok(Body { what: what(extent), comm: block::comm(scan)? })
    }

    /// `2048 + 8 [0]`; `2048 [0]` without data; `(12 00 ..) [0]` or `[0]` of a passthrough command.
    fn ended<'a>(
        &self,
        scan: &mut Scan<'a>,
        what: fn(Extent, i32) -> EventKind,
    ) -> Parsed<'a, Body> {
        let mut extent = self.extent(0, 0);
        if scan.rest().first().is_some_and(u8::is_ascii_digit) {
            extent.sector = scan.decimal("a sector")?;
            scan.literal(" ")?;
            if scan.passes("+ ") {
                extent.sectors = scan.decimal("a number of sectors")?;
                scan.literal(" ")?;
            }
        } else {
            extent = passthrough(extent);
        }
        parenthesis(scan)?;
        scan.literal("[")?;
        let error: i32 = scan.signed("an error number")?;
        scan.literal("]")?;
        scan.end()?;
        // It is a negative number in 16 bits, which blkparse prints without its sign.
        Ok(what(extent, if error > 0 { error - 0x1_0000 } else { error }).into())
    }

    /// `2048 + 8 <- (8,1) 0`
    fn remap<'a>(&self, scan: &mut Scan<'a>) -> Parsed<'a, Body> {
        let sector = scan.decimal("a sector")?;
        scan.literal(" + ")?;
        let sectors = scan.decimal("a number of sectors")?;
        scan.literal(" <- (")?;
        let from_dev = body::dev(scan, ",")?;
        scan.literal(") ")?;
        let from = (from_dev, scan.decimal("a sector")?);
        scan.end()?;
        Ok(EventKind::BioRemap { to: self.extent(sector, sectors), from }.into())
    }

    /// `2048 / 2304 [comm]`; blkparse cuts the second number to 32 bits.
    fn split<'a>(&self, scan: &mut Scan<'a>) -> Parsed<'a, Body> {
        let sector = scan.decimal("a sector")?;
        scan.literal(" / ")?;
        let at_new_sector = *scan;
        let new_sector = scan.decimal("a sector")?;
        if new_sector <= sector {
            return at_new_sector
                .wrong("a larger sector (blkparse cuts it to 32 bits; read blktrace's files)");
        }
        scan.literal(" [")?;
        let what = EventKind::BioSplit { bio: self.extent(sector, 0), new_sector };
        Ok(Body { what, comm: block::comm(scan)? })
    }
}

/// A passthrough command has neither sector nor sectors, and is neither read nor write.
fn passthrough(extent: Extent) -> Extent {
    Extent { sector: 0, sectors: 0, op: Op { kind: OpKind::Other, ..extent.op }, ..extent }
}

/// `(    1234) `: the time since the request's beginning (`-t`), or the bytes of a command.
fn parenthesis<'a>(scan: &mut Scan<'a>) -> Parsed<'a, ()> {
    if scan.passes("(") { scan.after(") ") } else { Ok(()) }
}
