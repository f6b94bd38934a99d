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
#[derive(Debug)]
pub(in crate::follow) struct AmbiguousRange {
    dev: Dev,
    /// All sectors that it ever had. Flushes and passthrough requests have none, and share no place
    /// with requests that have some.
    pub sectors: Range<u64>,
    /// Its command when events were lost, unless it is ambiguous with another request.
    pub command: Option<CommandKey>,
}

impl AmbiguousRange {
    fn place(&self, slot: Slot) -> Place {
        let Range { start, end } = self.sectors;
        (self.dev, (end.saturating_sub(start) <= SHORT_SECTORS).then_some(start), slot)
    }

    /// Whether an event at `extent` can belong to this request, whose last known state is `open`.
    pub fn reaches(&self, extent: &Extent, open: &Open) -> bool {
        let (dev, begin) = place(extent);
        let is_here = match begin {
            NOWHERE => open.sector == NOWHERE && open.request.op.kind == extent.op.kind,
            _ => self.sectors.start < end_of(extent, begin) && begin < self.sectors.end,
        };
        self.dev == dev && is_here
    }
}

fn end_of(extent: &Extent, begin: u64) -> u64 {
    begin.saturating_add(u64::from(extent.sectors.max(1)))
}

#[derive(Debug, Default)]
pub(in crate::follow) struct Ranges {
    all: HashMap<Slot, AmbiguousRange>,
    places: BTreeSet<Place>,
}

/// Device, first sector (`None` of a long place), and request.
type Place = (Dev, Option<u64>, Slot);

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
            let begin = open.first_sector().min(open.sector);
            let sectors = match open.sector {
                NOWHERE => NOWHERE..NOWHERE,
                sector => begin..sector.saturating_add(open.left.into()),
            };
            self.add(slot, AmbiguousRange { dev: open.request.dev, sectors, command: None });
        }
        is_new
    }

    fn add(&mut self, slot: Slot, range: AmbiguousRange) {
        self.places.insert(range.place(slot));
        self.all.insert(slot, range);
    }

    pub fn remove(&mut self, slot: Slot) -> Option<AmbiguousRange> {
        let range = self.all.remove(&slot)?;
        self.places.remove(&range.place(slot));
        Some(range)
    }

    /// Records that the sectors of a request have changed.
    pub fn note_change(&mut self, slot: Slot, open: &Open) {
        let Some(AmbiguousRange { sectors, .. }) = self.all.get(&slot) else { return };
        let end = open.sector.saturating_add(open.left.into());
        let wider = sectors.start.min(open.sector)..sectors.end.max(end);
        if *sectors == wider {
            return;
        }
        if let Some(range) = self.remove(slot) {
            self.add(slot, AmbiguousRange { sectors: wider, ..range });
        }
    }

    /// The requests to which an event at `extent` may belong, and perhaps others nearby.
    pub fn near(&self, extent: &Extent) -> Vec<Slot> {
        let (dev, begin) = place(extent);
        let near = |from, to| self.places.range((dev, from, 0)..=(dev, to, Slot::MAX));
        let short = near(Some(begin.saturating_sub(SHORT_SECTORS)), Some(end_of(extent, begin)));
        short.chain(near(None, None)).map(|(.., slot)| *slot).collect()
    }
}
