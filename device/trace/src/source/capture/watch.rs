// SPDX-License-Identifier: MIT OR Apache-2.0
//! Looks at events while they are traced: for an I/O that takes longer than it may, and for the figures of each interval.
//!
//! An I/O here is what can be told without following all events: a request, from its bio to its completion; a call that
//! makes data durable; a pause by dirty throttling. Pages of different CPUs are not read in the order of time, so an end
//! may be seen before its beginning.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::Options;
use super::cpu_data::{CpuData, page_at};
use crate::event::{Call, Class, Dev, Event, EventKind, Extent};
use crate::report::distribution::Distribution;
use crate::report::words::us;
use crate::source::decode::Decoder;
use crate::source::ring::{self, Entry};
use Mark::{Begun, Ended};

/// More without a counterpart are stale.
const OPEN_MAX: usize = 65_536;

/// Which I/O takes too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// One that takes longer, and, if a class is given, is a request of this class. Of a call the class is not known.
    Above(Duration, Option<Class>),
    /// A real-time request of which k2 says that it was late.
    Late,
}

impl Trigger {
    fn has_fired(self, took: Took) -> bool {
        let Trigger::Above(above, class) = self else { return false };
        u128::from(took.ns) > above.as_nanos() && (class.is_none() || class == took.class)
    }
}

/// Which I/O took how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slow {
    /// Such as `read on 8:0 sector 2048`.
    pub what: String,
    /// Of a request.
    pub place: Option<(Dev, u64)>,
    pub ns: u64,
}

impl std::fmt::Display for Slow {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} us for a {}", us(self.ns), self.what)
    }
}

/// Of one interval: all I/Os of one kind that ended in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// Of requests.
    pub dev: Option<Dev>,
    /// Such as `read`, `fsync`.
    pub what: &'static str,
    pub times: Distribution,
}

/// The device and the sector of a request, or the thread of a call, and the name of the operation.
type Key = (Option<Dev>, u64, &'static str);

/// The device of a request, and the name of the operation.
type Kind = (Option<Dev>, &'static str);

#[derive(Debug)]
pub struct Watch {
    decoder: Decoder,
    trigger: Option<Trigger>,
    /// Of I/Os that ended since the last interval, in ns; `None` if nobody wants to know.
    ended_ns: Option<BTreeMap<Kind, Vec<u64>>>,
    /// So much of each buffer has been looked at, in bytes.
    pub seen: Vec<u64>,
    /// Beginnings and ends that wait for the other.
    unpaired: HashMap<Key, Mark>,
}

impl Watch {
    pub fn new(decoder: Decoder, options: &Options) -> Watch {
        let (trigger, ended_ns) = (options.trigger, options.interval.map(|_| BTreeMap::new()));
        Watch { decoder, trigger, ended_ns, seen: Vec::new(), unpaired: HashMap::new() }
    }

    /// Looks at what has come since the last time; the first I/O that took too long.
    pub fn look<'a>(&mut self, buffers: impl Iterator<Item = &'a CpuData>) -> Option<Slow> {
        let mut slow = None;
        for (place, buffer) in buffers.enumerate() {
            self.seen.resize(self.seen.len().max(place + 1), 0);
            let page_size = self.decoder.page.page_size;
            while let Ok(Some(page)) = page_at(&buffer.file, self.seen[place], page_size) {
                self.seen[place] += page.len() as u64;
                // Reading the whole trace reports unreadable entries.
                for entry in ring::entries(&page, &self.decoder.page).into_iter().flatten() {
                    let Ok(Entry::Record { time_ns, data, .. }) = entry else { continue };
                    let Ok(Some(event)) = self.decoder.decode(time_ns, buffer.cpu, data) else {
                        continue;
                    };
                    slow = slow.or(self.take(&event));
                }
            }
        }
        slow
    }

    /// The figures since the last time.
    pub fn interval(&mut self) -> Vec<Interval> {
        let ended_ns = self.ended_ns.as_mut().map(std::mem::take).unwrap_or_default();
        let figures = ended_ns.into_iter().filter_map(|((dev, what), ns)| {
            Some(Interval { dev, what, times: Distribution::of(ns)? })
        });
        figures.collect()
    }

    fn take(&mut self, event: &Event) -> Option<Slow> {
        if let EventKind::K2Late { dev, sector, level, ns } = event.what {
            let what = format!("real-time request of level {level} on {dev} sector {sector}");
            let late = Slow { what, place: Some((dev, sector)), ns };
            return (self.trigger == Some(Trigger::Late)).then_some(late);
        }
        let ((dev, sector, what), took) = self.took(event)?;
        if let Some(ended_ns) = &mut self.ended_ns {
            ended_ns.entry((dev, what)).or_default().push(took.ns);
        }
        let place = dev.map(|dev| (dev, sector));
        let what = || match dev {
            Some(dev) => format!("{what} on {dev} sector {sector}"),
            None => what.to_owned(),
        };
        self.trigger?.has_fired(took).then(|| Slow { what: what(), place, ns: took.ns })
    }

    /// Which I/O is known with this event to have taken how long.
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
            EventKind::DirtyPause { pause_ns: ns } => {
                return Some(((None, 0, "pause by dirty throttling"), Took { ns, class: None }));
            }
            _ => return None,
        };
        Some((key, self.pair(key, mark)?))
    }

    /// How long it took, if its other end was seen already. A second beginning (a request is issued) is of the same.
    fn pair(&mut self, key: Key, mark: Mark) -> Option<Took> {
        let mark = match (self.unpaired.remove(&key), mark) {
            (Some(Begun(begun_ns)), Ended(ended_ns, class))
            | (Some(Ended(ended_ns, class)), Begun(begun_ns))
                if begun_ns <= ended_ns =>
            {
                return Some(Took { ns: ended_ns - begun_ns, class });
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

/// When, in ns; an end with the class of a request, which its first event does not have.
#[derive(Clone, Copy, Debug)]
enum Mark {
    Begun(u64),
    Ended(u64, Option<Class>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Took {
    ns: u64,
    class: Option<Class>,
}
