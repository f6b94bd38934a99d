// SPDX-License-Identifier: MIT OR Apache-2.0
//! Looks at events while they are traced, for an I/O that takes longer than it may.
//!
//! An I/O here is what can be told without following all events: a request, from its bio to its completion; a call that
//! makes data durable; a pause by dirty throttling. Pages of different CPUs are not read in the order of time, so an end
//! may be seen before its beginning.

use std::collections::HashMap;
use std::hash::Hash;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use super::cpu_data::CpuData;
use crate::event::{Call, Dev, Event, EventKind, Extent};
use crate::report::words::{op_word, us};
use crate::source::decode::Decoder;
use crate::source::format::PageFormat;
use crate::source::ring::{self, Entry};

/// More beginnings without an end are stale.
const OPEN_MAX: usize = 65_536;

/// Which I/O took how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slow {
    /// Such as `read on 8:0 sector 2048`.
    pub what: String,
    pub ns: u64,
}

impl std::fmt::Display for Slow {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} us for a {}", us(self.ns), self.what)
    }
}

/// What is under way.
#[derive(Debug)]
pub struct Watch {
    decoder: Decoder,
    format: PageFormat,
    above_ns: u64,
    /// So much of each buffer has been looked at, in bytes.
    seen: Vec<u64>,
    requests: Pairs<(Dev, u64)>,
    calls: Pairs<(u32, Call)>,
}

impl Watch {
    pub fn new(decoder: Decoder, format: PageFormat, above: Duration) -> Watch {
        Watch {
            decoder,
            format,
            above_ns: u64::try_from(above.as_nanos()).unwrap_or(u64::MAX),
            seen: Vec::new(),
            requests: Pairs::default(),
            calls: Pairs::default(),
        }
    }

    /// The buffers begin anew.
    pub fn restart(&mut self) {
        self.seen.clear();
    }

    /// Looks at what has come since the last time; the first I/O that took too long.
    pub fn look<'a>(&mut self, buffers: impl Iterator<Item = &'a CpuData>) -> Option<Slow> {
        let mut slow = None;
        let mut page = vec![0; self.format.page_size];
        for (place, buffer) in buffers.enumerate() {
            if self.seen.len() <= place {
                self.seen.push(0);
            }
            while self.seen[place] < buffer.bytes {
                let Ok(bytes) = buffer.file.read_at(&mut page, self.seen[place]) else { break };
                if bytes == 0 {
                    break;
                }
                self.seen[place] += bytes as u64;
                slow = slow.or(self.look_at_page(&page[..bytes]));
            }
        }
        slow
    }

    /// What cannot be read is told when the trace is.
    fn look_at_page(&mut self, page: &[u8]) -> Option<Slow> {
        let entries = ring::entries(page, &self.format).ok()?;
        let mut slow = None;
        for entry in entries {
            let Ok(Entry::Record { time_ns, data, .. }) = entry else { continue };
            let Ok(Some(event)) = self.decoder.decode(time_ns, 0, data) else { continue };
            slow = slow.or(self.take(&event));
        }
        slow
    }

    fn take(&mut self, event: &Event) -> Option<Slow> {
        let time_ns = event.time_ns;
        let place = |extent: &Extent| (extent.dev, extent.sector);
        let (what, ns) = match &event.what {
            EventKind::GetRequest(extent) | EventKind::Issue(extent) => {
                (of_request(extent), self.requests.begin(place(extent), time_ns)?)
            }
            EventKind::Complete { extent, .. } => {
                (of_request(extent), self.requests.end(place(extent), time_ns)?)
            }
            EventKind::CallEnter { call, .. } if call.is_sync() => {
                (call.name().to_owned(), self.calls.begin((event.pid, *call), time_ns)?)
            }
            EventKind::CallExit { call, .. } if call.is_sync() => {
                (call.name().to_owned(), self.calls.end((event.pid, *call), time_ns)?)
            }
            EventKind::DirtyPause { pause_ns } => {
                ("pause by dirty throttling".to_owned(), *pause_ns)
            }
            _ => return None,
        };
        (ns > self.above_ns).then_some(Slow { what, ns })
    }
}

fn of_request(extent: &Extent) -> String {
    format!("{} on {} sector {}", op_word(extent.op.kind), extent.dev, extent.sector)
}

/// Beginnings and ends that wait for the other, in ns.
#[derive(Debug)]
struct Pairs<K> {
    begun: HashMap<K, u64>,
    ended: HashMap<K, u64>,
}

impl<K> Default for Pairs<K> {
    fn default() -> Pairs<K> {
        Pairs { begun: HashMap::new(), ended: HashMap::new() }
    }
}

impl<K: Hash + Eq> Pairs<K> {
    /// How long it took, if its end was seen already. A second beginning (a request is issued) is of the same.
    fn begin(&mut self, key: K, time_ns: u64) -> Option<u64> {
        if let Some(took_ns) = self.ended.get(&key).and_then(|end_ns| end_ns.checked_sub(time_ns)) {
            self.ended.remove(&key);
            return Some(took_ns);
        }
        if self.begun.len() >= OPEN_MAX {
            self.begun.clear();
        }
        let begun_ns = self.begun.entry(key).or_insert(time_ns);
        *begun_ns = (*begun_ns).min(time_ns);
        None
    }

    fn end(&mut self, key: K, time_ns: u64) -> Option<u64> {
        match self.begun.remove(&key) {
            Some(begun_ns) if begun_ns <= time_ns => Some(time_ns - begun_ns),
            _ => {
                if self.ended.len() >= OPEN_MAX {
                    self.ended.clear();
                }
                self.ended.insert(key, time_ns);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_is_seen_before_its_beginning_is_of_the_same() {
        let mut pairs = Pairs::default();
        assert_eq!((pairs.end(1, 500), pairs.begin(1, 100)), (None, Some(400)));
        assert_eq!((pairs.begin(1, 600), pairs.end(1, 650)), (None, Some(50)));
        // An old end is not that of a later beginning.
        assert_eq!((pairs.end(2, 10), pairs.begin(2, 20), pairs.end(2, 25)), (None, None, Some(5)));
    }

    #[test]
    fn a_request_begins_with_the_first_that_is_seen_of_it() {
        let mut pairs = Pairs::default();
        assert_eq!(
            (pairs.begin(1, 100), pairs.begin(1, 140), pairs.end(1, 200)),
            (None, None, Some(100))
        );
    }
}
