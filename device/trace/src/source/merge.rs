// SPDX-License-Identifier: MIT OR Apache-2.0
//! Merges several sources, each in time order, into one. `files` merges files, and `pages` merges
//! CPUs.

use std::collections::BTreeMap;

use super::Problem;
use crate::event::Event;

type Item = Result<Event, Problem>;

/// The merged events, sorted by time; of equal times the first source comes first. A problem is
/// returned as soon as it is known.
pub struct Merge<S> {
    pub sources: Vec<S>,
    /// The next item of each source that has one, by time and index in `sources`.
    next: BTreeMap<(u64, usize), Item>,
}

impl<S: Iterator<Item = Item>> Merge<S> {
    pub fn new(sources: Vec<S>) -> Merge<S> {
        let mut merge = Merge { sources, next: BTreeMap::new() };
        (0..merge.sources.len()).for_each(|place| merge.read(place));
        merge
    }

    fn read(&mut self, place: usize) {
        if let Some(item) = self.sources[place].next() {
            let time_ns = item.as_ref().map_or(0, |event| event.time_ns);
            self.next.insert((time_ns, place), item);
        }
    }
}

impl<S: Iterator<Item = Item>> Iterator for Merge<S> {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        let ((_, place), item) = self.next.pop_first()?;
        self.read(place);
        Some(item)
    }
}
