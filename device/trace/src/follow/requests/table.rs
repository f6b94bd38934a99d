// SPDX-License-Identifier: MIT OR Apache-2.0
//! The open requests, between a tag and their completion, found by sector.
//!
//! Block events name a request by device and sector alone, and a request can move: a merge before it and a
//! completed piece both change its first sector. So the table has the present first sector of each request, and,
//! while bios may still be merged at its back, its end.

use std::collections::HashMap;

use super::open::{Open, RequestNumber, StartSector};

/// All that are open.
#[derive(Debug, Default)]
pub(super) struct Table {
    slots: Vec<Option<Open>>,
    free: Vec<RequestNumber>,
    begins: HashMap<StartSector, Vec<RequestNumber>>,
    ends: HashMap<StartSector, Vec<RequestNumber>>,
}

impl Table {
    pub fn insert(&mut self, open: Open) -> RequestNumber {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            RequestNumber::try_from(self.slots.len() - 1).unwrap_or(RequestNumber::MAX)
        });
        self.enter(slot, &open);
        self.slots[slot as usize] = Some(open);
        slot
    }

    pub fn remove(&mut self, slot: RequestNumber) -> Option<Open> {
        let open = self.slots.get_mut(slot as usize)?.take()?;
        self.leave(slot, &open);
        self.free.push(slot);
        Some(open)
    }

    pub fn get(&self, slot: RequestNumber) -> Option<&Open> {
        self.slots.get(slot as usize)?.as_ref()
    }

    /// Changes a request, but not its sectors.
    pub fn get_mut(&mut self, slot: RequestNumber) -> Option<&mut Open> {
        self.slots.get_mut(slot as usize)?.as_mut()
    }

    /// Changes a request, its sectors too.
    pub fn change(&mut self, slot: RequestNumber, change: impl FnOnce(&mut Open)) {
        let Some(mut open) = self.slots.get_mut(slot as usize).and_then(Option::take) else {
            return;
        };
        self.leave(slot, &open);
        change(&mut open);
        self.enter(slot, &open);
        self.slots[slot as usize] = Some(open);
    }

    /// Those that begin there and fit.
    pub fn beginning(
        &self,
        place: StartSector,
        fits: impl Fn(&Open) -> bool,
    ) -> Vec<RequestNumber> {
        self.among(&self.begins, place, fits)
    }

    /// Those that end there, can be merged with and fit.
    pub fn ending(&self, place: StartSector, fits: impl Fn(&Open) -> bool) -> Vec<RequestNumber> {
        self.among(&self.ends, place, fits)
    }

    /// All that are open.
    pub fn slots(&self) -> Vec<RequestNumber> {
        let open = self.slots.iter().enumerate().filter(|(_, open)| open.is_some());
        open.filter_map(|(slot, _)| RequestNumber::try_from(slot).ok()).collect()
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Open> {
        self.slots.iter_mut().flatten()
    }

    /// All that are left at the end of the trace.
    pub fn drain(self) -> impl Iterator<Item = Open> {
        self.slots.into_iter().flatten()
    }

    fn among(
        &self,
        index: &HashMap<StartSector, Vec<RequestNumber>>,
        place: StartSector,
        fits: impl Fn(&Open) -> bool,
    ) -> Vec<RequestNumber> {
        let Some(slots) = index.get(&place) else { return Vec::new() };
        slots.iter().copied().filter(|slot| self.get(*slot).is_some_and(&fits)).collect()
    }

    fn enter(&mut self, slot: RequestNumber, open: &Open) {
        self.begins.entry((open.dev, open.sector)).or_default().push(slot);
        if let Some(end) = open.end() {
            self.ends.entry(end).or_default().push(slot);
        }
    }

    fn leave(&mut self, slot: RequestNumber, open: &Open) {
        take_out(&mut self.begins, (open.dev, open.sector), slot);
        if let Some(end) = open.end() {
            take_out(&mut self.ends, end, slot);
        }
    }
}

fn take_out(
    index: &mut HashMap<StartSector, Vec<RequestNumber>>,
    place: StartSector,
    slot: RequestNumber,
) {
    if let Some(slots) = index.get_mut(&place) {
        slots.retain(|other| *other != slot);
        if slots.is_empty() {
            index.remove(&place);
        }
    }
}
