// SPDX-License-Identifier: MIT OR Apache-2.0
//! Looks at events while they are traced, for the trigger and for the statistics of each interval.
//! The reading thread calls it.
//!
//! An I/O here is one that can be recognized without following all events: a request, from its bio
//! to its completion; a call that makes data durable; a pause by dirty throttling. Pages of
//! different CPUs are not read in time order, so an end may come before its beginning.

use std::collections::{BTreeMap, HashMap};

use super::cpu_data::{CpuData, page_at};
use super::options::Options;
use crate::event::{Call, Class, Dev, Event, EventKind, Extent};
use crate::report::distribution::Distribution;
use crate::report::words::us;
use crate::source::decode::Decoder;
use crate::source::ring::{self, Entry};
use Mark::{Begun, Ended};

pub use super::options::Trigger;

/// The number of unpaired events to keep. With more, all of them are stale.
const OPEN_MAX: usize = 65_536;

impl Trigger {
    fn has_fired(self, (ns, class): Took) -> bool {
        let Trigger::Above(above, of) = self else { return false };
        u128::from(ns) > above.as_nanos() && (of.is_none() || of == class)
    }
}

/// The I/O that fired the trigger, and its duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slow {
    /// The I/O in words, such as `read on 8:0 sector 2048`.
    pub what: String,
    /// The device and sector of a request.
    pub place: Option<(Dev, u64)>,
    pub ns: u64,
}

impl std::fmt::Display for Slow {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} us for a {}", us(self.ns), self.what)
    }
}

/// The statistics of an interval: all I/Os of one kind that ended in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// The device of requests.
    pub dev: Option<Dev>,
    /// The operation, such as `read` or `fsync`.
    pub what: &'static str,
    pub times: Distribution,
}

/// The device and the sector of a request, or the thread of a call, and the name of the operation.
type Key = (Option<Dev>, u64, &'static str);

/// The device of a request, and the name of the operation.
type Kind = (Option<Dev>, &'static str);

/// The duration of an I/O in ns, and its class.
type Took = (u64, Option<Class>);

#[derive(Debug)]
pub struct Watch {
    decoder: Decoder,
    trigger: Option<Trigger>,
    /// The times of I/Os that ended in this interval, in ns; `None` if no interval was requested.
    ended_ns: Option<BTreeMap<Kind, Vec<u64>>>,
    /// The number of bytes of each buffer that have been looked at.
    pub seen: Vec<u64>,
    /// Beginnings and ends whose counterpart has not come.
    unpaired: HashMap<Key, Mark>,
}

impl Watch {
    pub fn new(decoder: Decoder, options: &Options) -> Watch {
        let (trigger, ended_ns) = (options.trigger, options.interval.map(|_| BTreeMap::new()));
        Watch { decoder, trigger, ended_ns, seen: Vec::new(), unpaired: HashMap::new() }
    }

    /// Looks at the events since the last call. Returns the first I/O that fired the trigger.
    pub fn look<'a>(&mut self, buffers: impl Iterator<Item = &'a CpuData>) -> Option<Slow> {
        let mut slow = None;
        for (place, buffer) in buffers.enumerate() {
            self.seen.resize(self.seen.len().max(place + 1), 0);
            let page_size = self.decoder.page.page_size;
            while let Ok(Some(page)) = page_at(&buffer.file, self.seen[place], page_size) {
                self.seen[place] += page.len() as u64;
                // An unreadable entry is reported when the whole trace is read.
                let entries = ring::entries(&page, &self.decoder.page).into_iter().flatten();
                for entry in entries.flatten() {
                    slow = slow.or(self.take_entry(entry, buffer.cpu));
                }
            }
        }
        slow
    }

    /// The statistics since the last call.
    pub fn interval(&mut self) -> Vec<Interval> {
        let ended_ns = self.ended_ns.as_mut().map(std::mem::take).unwrap_or_default();
        let of = |((dev, what), ns)| Some(Interval { dev, what, times: Distribution::of(ns)? });
        ended_ns.into_iter().filter_map(of).collect()
    }

    fn take_entry(&mut self, entry: Entry, cpu: u32) -> Option<Slow> {
        let Entry::Record { time_ns, data, .. } = entry else {
            // A request that began before may have ended unseen.
            self.unpaired.clear();
            return None;
        };
        let event = self.decoder.decode(time_ns, cpu, data).ok()??;
        self.take(&event)
    }

    fn take(&mut self, event: &Event) -> Option<Slow> {
        if let EventKind::K2Late { dev, sector, level, ns } = event.what {
            let what = format!("real-time request of level {level} on {dev} sector {sector}");
            let late = Slow { what, place: Some((dev, sector)), ns };
            return (self.trigger == Some(Trigger::Late)).then_some(late);
        }
        let ((dev, sector, what), took) = self.took(event)?;
        if let Some(ended_ns) = &mut self.ended_ns {
            ended_ns.entry((dev, what)).or_default().push(took.0);
        }
        let place = dev.map(|dev| (dev, sector));
        let at = || dev.map_or_else(String::new, |dev| format!(" on {dev} sector {sector}"));
        let slow = || Slow { what: format!("{what}{}", at()), place, ns: took.0 };
        self.trigger?.has_fired(took).then(slow)
    }

    /// The I/O whose duration is known with this event, and the duration.
    fn took(&mut self, event: &Event) -> Option<(Key, Took)> {
        let at_ns = event.time_ns;
        let request = |of: Extent| (Some(of.dev), of.sector, of.op.kind.into_str());
        let of_call = |call: Call| (None, event.pid.into(), call.name());
        let class = |of: Extent| of.priority.map(|priority| priority.class);
        let (key, mark) = match event.what {
            EventKind::GetRequest(of) | EventKind::Issue(of) => (request(of), Begun(at_ns)),
            EventKind::Complete { extent, .. } => (request(extent), Ended(at_ns, class(extent))),
            EventKind::CallEnter { call, .. } if call.is_sync() => (of_call(call), Begun(at_ns)),
            EventKind::CallExit { call, .. } if call.is_sync() => {
                (of_call(call), Ended(at_ns, None))
            }
            // It ends as a part of another request, or elsewhere.
            EventKind::RequestMerge(of) => {
                self.unpaired.remove(&request(of));
                return None;
            }
            EventKind::FrontMerge(of) => {
                let end = of.sector.wrapping_add(of.sectors.into());
                let merged = self.unpaired.remove(&request(Extent { sector: end, ..of }))?;
                self.unpaired.insert(request(of), merged);
                return None;
            }
            EventKind::DirtyPause { pause_ns } => {
                return Some(((None, 0, "pause by dirty throttling"), (pause_ns, None)));
            }
            _ => return None,
        };
        Some((key, self.pair(key, mark)?))
    }

    /// The duration, if the other end was seen before. A second beginning (the issue of a request)
    /// belongs to the same I/O.
    fn pair(&mut self, key: Key, mark: Mark) -> Option<Took> {
        let mark = match (self.unpaired.remove(&key), mark) {
            (Some(Begun(begun_ns)), Ended(ended_ns, class))
            | (Some(Ended(ended_ns, class)), Begun(begun_ns))
                if begun_ns <= ended_ns =>
            {
                return Some((ended_ns - begun_ns, class));
            }
            (Some(Begun(first_ns)), Begun(begun_ns)) => Begun(first_ns.min(begun_ns)),
            (_, mark) => mark,
        };
        if self.unpaired.len() >= OPEN_MAX {
            self.unpaired.clear();
        }
        self.unpaired.insert(key, mark);
        None
    }
}

/// The time of a beginning or an end, in ns. An end has the class of the request; the first event
/// has none.
#[derive(Clone, Copy, Debug)]
enum Mark {
    Begun(u64),
    Ended(u64, Option<Class>),
}
