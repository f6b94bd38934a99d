// SPDX-License-Identifier: MIT OR Apache-2.0
//! System calls, in the two ways that they are printed: perf and trace-cmd use the event's format (all in
//! hexadecimal with `0x`); ftrace prints them like calls (hexadecimal too, in many kernels without `0x`).

use super::body::Body;
use super::scan::{Parsed, Scan};
use crate::calls::CallEvents;
use crate::event::EventKind;

/// `fd: 0x00000003, buf: 0x7ffc8e7631a8, count: 0x00000340`: the arguments.
pub fn enter<'a>(events: &'static CallEvents, scan: &mut Scan<'a>) -> Parsed<'a, Body> {
    let arguments = *scan;
    // A buffer's content may be printed too, and may look like arguments: the file descriptor stands before it.
    let fd = match events.fd {
        Some(name) => Some(file_descriptor(name, arguments)?),
        None => None,
    };
    Ok(EventKind::CallEnter { call: events.call, fd }.into())
}

/// The first argument of this name. The kernel keeps it in 64 bits, of which the lower 32 count.
fn file_descriptor<'a>(name: &'static str, mut scan: Scan<'a>) -> Parsed<'a, i32> {
    let at_name = scan;
    while !(scan.passes(name) && scan.passes(": ")) {
        if scan.after(", ").is_err() {
            return at_name.wrong(name);
        }
    }
    let value = scan.hex("a file descriptor")?;
    argument_ends(scan)?;
    Ok(value as i32)
}

fn argument_ends(mut scan: Scan<'_>) -> Parsed<'_, ()> {
    match scan.rest().first() {
        Some(b',') => Ok(()),
        _ => scan.end(),
    }
}

/// `0x340`: what the call returns, in 64 bits.
pub fn exit<'a>(events: &'static CallEvents, scan: &mut Scan<'a>) -> Parsed<'a, Body> {
    let result = scan.hex("a result")? as i64;
    scan.end()?;
    Ok(EventKind::CallExit { call: events.call, result }.into())
}
