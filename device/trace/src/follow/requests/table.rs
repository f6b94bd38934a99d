// SPDX-License-Identifier: MIT OR Apache-2.0
//! The open requests, between a tag and their completion, found by sector.
//!
//! Block events name a request by device and sector alone, and a request can move: a merge before it and a
//! completed piece both change its first sector. So the table has the present first sector of each request, and,
//! while bios may still be merged at its back, its end.

use std::collections::HashMap;

use slab::Slab;

use super::open::{Open, RequestNumber, StartSector};

#[derive(Debug, Default)]
pub(in crate::follow) struct Table {
    all: Slab<Open>,
    begins: HashMap<StartSector, Vec<RequestNumber>>,
    ends: HashMap<StartSector, Vec<RequestNumber>>,
}

impl Table {
    pub fn insert(&mut self, open: Open) -> RequestNumber {
        let number = self.all.insert(open);
        self.enter(number);
        number
    }

    pub fn remove(&mut self, number: RequestNumber) -> Option<Open> {
        self.leave(number);
        self.all.try_remove(number)
    }

    pub fn get(&self, number: RequestNumber) -> Option<&Open> {
        self.all.get(number)
    }

    /// Changes a request, but not its sectors.
    pub fn get_mut(&mut self, number: RequestNumber) -> Option<&mut Open> {
        self.all.get_mut(number)
    }

    /// Changes a request, its sectors too.
    pub fn change(&mut self, number: RequestNumber, change: impl FnOnce(&mut Open)) {
        self.leave(number);
        if let Some(open) = self.all.get_mut(number) {
            change(open);
        }
        self.enter(number);
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

    pub fn numbers(&self) -> Vec<RequestNumber> {
        self.all.iter().map(|(number, _)| number).collect()
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Open> {
        self.all.iter_mut().map(|(_, open)| open)
    }

    /// All that are left at the end of the trace.
    pub fn into_values(self) -> impl Iterator<Item = Open> {
        self.all.into_iter().map(|(_, open)| open)
    }

    fn among(
        &self,
        index: &HashMap<StartSector, Vec<RequestNumber>>,
        place: StartSector,
        fits: impl Fn(&Open) -> bool,
    ) -> Vec<RequestNumber> {
        let all = index.get(&place).into_iter().flatten().copied();
        all.filter(|number| self.get(*number).is_some_and(&fits)).collect()
    }

    fn enter(&mut self, number: RequestNumber) {
        let Some(open) = self.all.get(number) else { return };
        self.begins.entry(open.start()).or_default().push(number);
        if let Some(end) = open.end() {
            self.ends.entry(end).or_default().push(number);
        }
    }

    fn leave(&mut self, number: RequestNumber) {
        let Some(open) = self.all.get(number) else { return };
        take_out(&mut self.begins, open.start(), number);
        if let Some(end) = open.end() {
            take_out(&mut self.ends, end, number);
        }
    }
}

fn take_out(
    index: &mut HashMap<StartSector, Vec<RequestNumber>>,
    place: StartSector,
    number: RequestNumber,
) {
    if let Some(numbers) = index.get_mut(&place) {
        numbers.retain(|other| *other != number);
        if numbers.is_empty() {
            index.remove(&place);
        }
    }
}
