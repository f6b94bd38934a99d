// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses pages of the kernel's ring buffer, as `per_cpu/cpuN/trace_pipe_raw` returns them. `pages`
//! and `capture::watch` call it.
//!
//! A page begins with a time and a commit word: the length of the data, and whether records were
//! lost before this page. Each entry of the data begins with a u32. Its low 5 bits are the kind,
//! and the other 27 bits are the time since the previous entry. Only little-endian kernels are
//! supported.

use super::format::PageFormat;

/// Padding: a single entry, or the rest of the page.
const KIND_PADDING: u32 = 29;
/// An entry that only advances the time, by more than 27 bits can hold.
const KIND_TIME_EXTEND: u32 = 30;
/// An entry that sets the time, except its top 5 bits.
const KIND_TIME_STAMP: u32 = 31;
const TIME_BITS: u32 = 27;
const STAMP_BITS: u32 = 59;
const COMMIT_MISSED: u64 = 1 << 31;
const COMMIT_MISSED_STORED: u64 = 1 << 30;
/// The bits of the flags; the bits below are the length.
const COMMIT_FLAGS: u64 = COMMIT_MISSED | COMMIT_MISSED_STORED;

/// An entry of a page. Times are in ns of the trace clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    /// Records were lost before the page, which begins at `time_ns`. `count` is 0 if the page has
    /// no room for it. This entry is always the first.
    Lost { time_ns: u64, count: u64 },
    /// A record. Its data begins at `offset` in the page. Its layout is in the event's format, and
    /// padding may follow.
    Record { time_ns: u64, offset: usize, data: &'a [u8] },
}

/// A page that the kernel would not write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPage {
    /// The place of the error, in bytes from the beginning of the page.
    pub offset: usize,
    /// The error, with the unexpected value.
    pub what: String,
}

/// The entries of one page in order. An error is the last item.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    /// The page, up to the end of its data.
    page: &'a [u8],
    at: usize,
    time_ns: u64,
    lost: Option<u64>,
}

/// Starts to parse a page. Its data may end before `page` does.
pub fn entries<'a>(page: &'a [u8], format: &PageFormat) -> Result<Entries<'a>, BadPage> {
    let bad = |offset, what: String| Err(BadPage { offset, what });
    if page.len() < format.data_offset {
        return bad(0, format!("{} bytes, its head alone has {}", page.len(), format.data_offset));
    }
    let time_ns = u64_at(page, 0).unwrap_or_default();
    // The flags are in the low half, the only half on a 32-bit kernel.
    let commit = u64::from(u32_at(page, 8).unwrap_or_default());
    let length = usize::try_from(commit & !COMMIT_FLAGS).unwrap_or(usize::MAX);
    if length > page.len() - format.data_offset {
        return bad(8, format!("{length} bytes of data in a page of {}", page.len()));
    }
    let end = format.data_offset + length;
    let lost = (commit & COMMIT_MISSED != 0).then(|| match commit & COMMIT_MISSED_STORED {
        0 => 0,
        _ if format.commit_size == 8 => u64_at(page, end).unwrap_or(0),
        _ => u32_at(page, end).unwrap_or(0).into(),
    });
    Ok(Entries { page: &page[..end], at: format.data_offset, time_ns, lost })
}

impl<'a> Entries<'a> {
    /// The next record; `None` at the end of the data.
    fn record(&mut self) -> Result<Option<Entry<'a>>, String> {
        while self.at < self.page.len() {
            let head =
                u32_at(self.page, self.at).ok_or("less than an entry is left of the data")?;
            let (kind, delta) = (head & 31, u64::from(head >> 5));
            if (1..KIND_PADDING).contains(&kind) {
                self.time_ns = self.time_ns.wrapping_add(delta);
                return self.record_at(self.at + 4, kind as usize * 4).map(Some);
            }
            if kind == KIND_PADDING && delta == 0 {
                break;
            }
            let passes = || format!("an entry of kind {kind} passes the end of the data");
            let word = u32_at(self.page, self.at + 4).ok_or_else(passes)?;
            let stamp = u64::from(word) << TIME_BITS | delta;
            match kind {
                KIND_TIME_EXTEND => self.time_ns = self.time_ns.wrapping_add(stamp),
                KIND_TIME_STAMP => self.time_ns = whole_stamp_ns(stamp, self.time_ns),
                _ => self.time_ns = self.time_ns.wrapping_add(delta),
            }
            let length = word as usize;
            match kind {
                // A record too long for 5 bits: its length is in a word of its own, and includes
                // that word.
                0 if length >= 4 => return self.record_at(self.at + 8, length - 4).map(Some),
                0 => return Err(format!("a record of length {length}")),
                // A discarded record; its length includes the word.
                KIND_PADDING if length < 4 => return Err(format!("a padding of {length} bytes")),
                KIND_PADDING => self.at = (self.at + 4).saturating_add(length),
                _ => self.at += 8,
            }
        }
        self.at = self.page.len();
        Ok(None)
    }

    /// The record of `length` bytes at `offset`; the entry ends with it.
    fn record_at(&mut self, offset: usize, length: usize) -> Result<Entry<'a>, String> {
        let end = offset.saturating_add(length);
        if end > self.page.len() {
            return Err(format!("a record of {length} bytes passes the end of the data"));
        }
        // Entries are aligned. Only the last one may end unaligned, with the page.
        self.at = end.next_multiple_of(4).min(self.page.len());
        Ok(Entry::Record { time_ns: self.time_ns, offset, data: &self.page[offset..end] })
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, BadPage>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(count) = self.lost.take() {
            return Some(Ok(Entry::Lost { time_ns: self.time_ns, count }));
        }
        let record = self.record().transpose()?;
        let offset = self.at;
        Some(record.map_err(|what| {
            self.at = self.page.len();
            BadPage { offset, what }
        }))
    }
}

/// Completes a time stamp. It lacks the top bits of the time; these equal those of the previous
/// entry, or are one more.
fn whole_stamp_ns(stamp: u64, before_ns: u64) -> u64 {
    let top = before_ns >> STAMP_BITS << STAMP_BITS;
    if top == 0 {
        return stamp;
    }
    let whole = top | stamp;
    if whole < before_ns { whole.wrapping_add(1 << STAMP_BITS) } else { whole }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}
