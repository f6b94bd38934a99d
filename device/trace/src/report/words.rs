// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of operations, calls and origins, and formats of numbers. Records and tables use them.

use std::collections::BTreeMap;

use crate::event::{Call, Context, Dev};
use crate::io::{Io, Request};

/// The names of devices, as far as known.
pub type Names = BTreeMap<Dev, String>;

/// The device's name if known, or else its number.
pub fn device_name(names: &Names, dev: Dev) -> String {
    names.get(&dev).cloned().unwrap_or_else(|| dev.to_string())
}

/// The operation of an I/O with these requests. For io_uring and aio, it is the operation of the
/// first request.
pub fn io_op(io: &Io, own: &[&Request]) -> &'static str {
    use Call::*;
    match (io.operation, io.call) {
        (Some(operation), _) => call_op(operation),
        (_, IoSubmit | IoGetevents | IoPgetevents | IoUringEnter) => {
            own.first().map_or("other", |request| request.op.kind.into_str())
        }
        (_, call) => call_op(call),
    }
}

/// `read`, `write`, or the name of another call.
pub fn call_op(call: Call) -> &'static str {
    match call {
        _ if call.is_read() => "read",
        _ if call.is_write() => "write",
        _ => call.name(),
    }
}

/// A size with the largest binary unit that leaves it whole.
pub fn size_text(bytes: u64) -> String {
    match bytes {
        0 => "0".into(),
        bytes if bytes % (1 << 20) == 0 => format!("{} MiB", bytes >> 20),
        bytes if bytes % (1 << 10) == 0 => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} B"),
    }
}

/// A text such as "read 4 KiB".
pub fn op_and_size(op: &str, bytes: u64) -> String {
    if bytes == 0 { op.into() } else { format!("{op} {}", size_text(bytes)) }
}

/// A text such as "read 4 KiB sector 8 by fio (1234), readahead of inode 12".
pub fn request_text(request: &Request) -> String {
    let by = thread(&request.comm.to_string(), request.pid);
    let behalf = behalf(request.origin.into_str(), request.origin.inode());
    let what = op_and_size(request.op.kind.into_str(), request.bytes);
    format!("{what} sector {} by {by}, {behalf}", request.sector)
}

/// A thread, such as "fio (1234)".
pub fn thread(comm: &str, pid: u32) -> String {
    match (comm, pid) {
        ("", 0) => "an unknown thread".into(),
        ("", pid) => format!("thread {pid}"),
        (comm, pid) => format!("{comm} ({pid})"),
    }
}

/// The origin, for use in a sentence.
pub fn behalf(origin: &str, inode: Option<u64>) -> String {
    let what = match origin {
        "io" => "of a system call",
        "thread" => "no system call seen",
        origin => origin,
    };
    inode.map_or(what.into(), |inode| format!("{what} of inode {inode}"))
}

/// A path, if known, in a line of text between `before` and `after`.
pub fn path_text(before: &str, path: Option<&String>, after: &str) -> String {
    let shown = |path: &String| before.to_owned() + &path.replace(char::is_control, "?") + after;
    path.map(shown).unwrap_or_default()
}

/// A number and a noun, such as "2 flushes".
pub fn count(number: u64, one: &str) -> String {
    match (number, one.ends_with("sh")) {
        (1, _) => format!("1 {one}"),
        (number, true) => format!("{number} {one}es"),
        (number, false) => format!("{number} {one}s"),
    }
}

/// A time in us, with one decimal.
pub fn us(ns: u64) -> String {
    format!("{:.1}", ns as f64 / 1_000.0)
}

/// The waker of a thread, in words. An interrupt runs in the context of any thread, so that thread
/// is not named.
pub fn by(comm: &str, pid: u32, context: Option<Context>) -> String {
    let name = thread(comm, pid);
    let is_ksoftirqd = comm.starts_with("ksoftirqd/");
    let on = if pid == 0 { "on an idle CPU".into() } else { format!("on top of {name}") };
    match (context, pid) {
        // The idle thread wakes no other; an interrupt on top of it does.
        (Some(Context::Interrupt), _) | (None, 0) => format!("by an interrupt {on}"),
        (Some(Context::Softirq), _) if !is_ksoftirqd => format!("by a softirq {on}"),
        (None, _) => format!("by {name} or an interrupt on top of it"),
        (Some(_), _) => format!("by {name}"),
    }
}
