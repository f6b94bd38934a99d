// SPDX-License-Identifier: MIT OR Apache-2.0
//! The possible places of ambiguous requests. `ambiguous` looks them up at each event, so they are
//! found by device and sector: after many losses there are many.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use super::open::{CommandKey, NOWHERE, Open, Slot, place};
use crate::event::{Dev, Extent};

/// Longer places are few, and all of them are looked at.
const SHORT_SECTORS: u64 = 1 << 13;

/// The possible place of an ambiguous request.
#[derive(Clone, Debug)]
enum Place {
    /// Flushes and passthrough requests. They share no place with requests that have sectors.
    Nowhere,
    Sectors(Range<u64>),
}

impl Place {
    fn of(open: &Open) -> Place {
        if open.sector == NOWHERE {
            return Place::Nowhere;
        }
        Place::Sectors(open.first_sector().min(open.sector)..end(open))
    }
}

fn end(open: &Open) -> u64 {
    open.sector.saturating_add(u64::from(open.left))
}

#[derive(Debug)]
pub(in crate::follow) struct AmbiguousRange {
    place: Place,
    /// Its command when events were lost, unless it is ambiguous with another request.
    pub command: Option<CommandKey>,
    /// All sectors that it ever had, by which it is found.
    found_by: (Dev, Range<u64>),
}

impl AmbiguousRange {
    /// Whether an event at `extent` can belong to this request, whose last known state is `open`.
    pub fn reaches(&self, extent: &Extent, open: &Open) -> bool {
        let (dev, begin) = place(extent);
        let own = &open.request;
        if own.dev != dev {
            return false;
        }
        let Place::Sectors(range) = &self.place else {
            return begin == NOWHERE && own.op.kind == extent.op.kind;
        };
        let (from, to) = (range.start.min(open.sector), range.end.max(end(open)));
        begin != NOWHERE && from < end_of(extent, begin) && begin < to
    }

    pub fn has(&self, sector: u64) -> bool {
        matches!(&self.place, Place::Sectors(range) if range.contains(&sector))
    }
}

fn end_of(extent: &Extent, begin: u64) -> u64 {
    begin.saturating_add(u64::from(extent.sectors.max(1)))
}

#[derive(Debug, Default)]
pub(in crate::follow) struct Ranges {
    all: HashMap<Slot, AmbiguousRange>,
    /// Device and first sector.
    short: BTreeSet<(Dev, u64, Slot)>,
    long: BTreeSet<(Dev, Slot)>,
}

impl Ranges {
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn get_mut(&mut self, slot: Slot) -> Option<&mut AmbiguousRange> {
        self.all.get_mut(&slot)
    }

    /// Adds the place of a request. Returns whether it is new.
    pub fn insert(&mut self, slot: Slot, open: &Open) -> bool {
        let is_new = !self.all.contains_key(&slot);
        if is_new {
            let place = Place::of(open);
            let sectors = match &place {
                Place::Nowhere => NOWHERE..NOWHERE,
                Place::Sectors(range) => range.clone(),
            };
            self.add(
                slot,
                AmbiguousRange { place, command: None, found_by: (open.request.dev, sectors) },
            );
        }
        is_new
    }

    fn add(&mut self, slot: Slot, range: AmbiguousRange) {
        let (dev, sectors) = &range.found_by;
        if sectors.end.saturating_sub(sectors.start) > SHORT_SECTORS {
            self.long.insert((*dev, slot));
        } else {
            self.short.insert((*dev, sectors.start, slot));
        }
        self.all.insert(slot, range);
    }

    pub fn remove(&mut self, slot: Slot) -> Option<AmbiguousRange> {
        let range = self.all.remove(&slot)?;
        let (dev, sectors) = &range.found_by;
        self.short.remove(&(*dev, sectors.start, slot));
        self.long.remove(&(*dev, slot));
        Some(range)
    }

    /// Records that the sectors of a request have changed.
    pub fn note_change(&mut self, slot: Slot, open: &Open) {
        let Some(AmbiguousRange { found_by: (_, sectors), .. }) = self.all.get(&slot) else {
            return;
        };
        let wider = sectors.start.min(open.sector)..sectors.end.max(end(open));
        if *sectors == wider {
            return;
        }
        if let Some(mut range) = self.remove(slot) {
            range.found_by.1 = wider;
            self.add(slot, range);
        }
    }

    /// The requests to which an event at `extent` may belong, and perhaps others nearby.
    pub fn near(&self, extent: &Extent) -> Vec<Slot> {
        let (dev, begin) = place(extent);
        let from = (dev, begin.saturating_sub(SHORT_SECTORS), 0);
        let short = self.short.range(from..=(dev, end_of(extent, begin), Slot::MAX));
        let long = self.long.range((dev, 0)..=(dev, Slot::MAX));
        short.map(|(_, _, slot)| *slot).chain(long.map(|(_, slot)| *slot)).collect()
    }
}
