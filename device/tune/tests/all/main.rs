// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the search picks, and from how many measurements; nothing here measures.

#![allow(clippy::unwrap_used)]

mod confidence;
mod knobs;
mod paper;
mod recorded;
mod search;

use steadyio_tune::goal::{Figures, Goal};
use steadyio_tune::grid::Grid;
use steadyio_tune::search::Search;

/// A measurement whose tail is exactly known.
fn figures(tail_ns: u64, mib_s: f64) -> Figures {
    Figures { tail_ns, tail_ns_min: Some(tail_ns), tail_ns_max: Some(tail_ns), mib_s }
}

/// Searches on given curves.
fn search(sizes: &[usize], curves: &[Figures], goal: Goal, near_percent: f64) -> Search {
    let mut search = Search::new(Grid::new(sizes.to_vec()), goal, near_percent);
    while let Some(next) = search.next() {
        assert!(!search.measured().contains_key(&next), "{next} is measured twice");
        search.add(next, curves[next]);
    }
    search
}

/// The same with all candidates measured.
fn sweep(sizes: &[usize], curves: &[Figures], goal: Goal, near_percent: f64) -> Search {
    let mut search = Search::new(Grid::new(sizes.to_vec()), goal, near_percent);
    for (candidate, &figures) in curves.iter().enumerate() {
        search.add(candidate, figures);
    }
    search
}
