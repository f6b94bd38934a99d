// SPDX-License-Identifier: MIT OR Apache-2.0
//! Detects the format of a trace file from its contents. `files` calls it.

use super::text::Text;
use super::trace_dat;

pub use super::text::Format;

/// The number of bytes at the beginning of a file that suffice to detect its format.
pub const HEAD_BYTES: usize = 1 << 18;

/// The first bytes of other files that users mistake for traces, with advice for each.
const OTHERS: [(&[u8], &str); 7] = [
    (b"PERFILE2", "is perf's own file: give the output of `perf script`"),
    (b"2ELIFREP", "is perf's own file: give the output of `perf script`"),
    (b"\x07tae", NO_CALLS),
    (b"\x1f\x8b", "is compressed (gzip): unpack it first"),
    (b"\x28\xb5\x2f\xfd", "is compressed (zstd): unpack it first"),
    (b"\xfd7zXZ", "is compressed (xz): unpack it first"),
    (b"\xff\xfe", "is text in UTF-16: save it as UTF-8"),
];

const SYSTRACE: &str = "is a page of Systrace (HTML), which has ftrace's text inside: take it out with \
    `sed -n '/class=\"trace-data\"/,/<\\/script>/{//!p}' FILE > trace.txt`";

const LOOKED_FOR: &str = "not a known trace format. Looked for: ftrace's text (trace, trace_pipe, trace-cmd \
    report), perf script's, trace.dat, and folders that `steady trace --keep` made; --format names the format";
const NO_CALLS: &str =
    "is a file of blktrace, which has no system calls: record with trace-cmd, perf or steady trace";

/// The first bytes of the text of a trace, which may have no event: one CPU was idle.
const HEADINGS: [&[u8]; 3] = [b"# tracer: ", b"cpus=", b"version ="];

/// The format of a file that begins with `head` (the whole file, or [`HEAD_BYTES`]). The error says
/// why it is not a trace. For an empty file any format of text will do: its reader reports it.
pub fn format(head: &[u8]) -> Result<Format, &'static str> {
    if head.starts_with(trace_dat::MAGIC) {
        return Ok(Format::TraceDat);
    }
    if let Some((_, why)) = OTHERS.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Err(why);
    }
    if is_page(head) {
        return Err(SYSTRACE);
    }
    let texts = [Format::Ftrace, Format::Perf].map(|format| (understood(format, head), format));
    match texts.into_iter().max_by_key(|(lines, _)| *lines) {
        Some((1.., format)) => Ok(format),
        Some((0, _)) if head.is_empty() || is_heading(head) => Ok(Format::Ftrace),
        _ => Err(LOOKED_FOR),
    }
}

/// Whether the file has nothing but a heading of ftrace or trace-cmd.
fn is_heading(head: &[u8]) -> bool {
    let known = HEADINGS.iter().any(|heading| head.starts_with(heading));
    known && Text::new(Format::Ftrace, head, "").next().is_none()
}

/// Whether the text begins like HTML.
fn is_page(head: &[u8]) -> bool {
    let text = head.trim_ascii_start();
    let begins = |tag: &[u8]| text.get(..tag.len()).is_some_and(|of| of.eq_ignore_ascii_case(tag));
    begins(b"<!doctype html") || begins(b"<html")
}

/// The number of lines with a head that can be parsed in that format, minus those without. Another
/// kernel may print other values: that does not make it another format.
fn understood(format: Format, head: &[u8]) -> u64 {
    // The last line may be truncated.
    let end = head.iter().rposition(|byte| *byte == b'\n').map_or(head.len(), |end| end + 1);
    let mut text = Text::new(format, &head[..end], "");
    let (mut events, mut problems) = (0, 0);
    for item in text.by_ref() {
        *(if item.is_ok() { &mut events } else { &mut problems }) += 1;
    }
    (events + text.skipped + text.misread).saturating_sub(problems - text.misread)
}
