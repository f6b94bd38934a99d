// SPDX-License-Identifier: MIT OR Apache-2.0
//! The samples in `tests/traces`, and what tests of several sources ask of them.

pub mod render;

use std::path::{Path, PathBuf};

use steadyio_trace::event::{Event, EventKind};
use steadyio_trace::source::Problem;

/// Where a sample is.
pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces").join(name)
}

/// The bytes of a sample.
pub fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(path(name)).expect(name)
}

/// Events and problems apart.
pub fn split(source: impl Iterator<Item = Result<Event, Problem>>) -> (Vec<Event>, Vec<Problem>) {
    let (mut events, mut problems) = (Vec::new(), Vec::new());
    for item in source {
        match item {
            Ok(event) => events.push(event),
            Err(problem) => problems.push(problem),
        }
    }
    (events, problems)
}

/// The events of a source that has no problem.
pub fn all_events(source: impl Iterator<Item = Result<Event, Problem>>) -> Vec<Event> {
    let (events, problems) = split(source);
    assert_eq!(problems, []);
    assert!(!events.is_empty());
    events
}

/// Those of the block layer, ordered by what they say, with their times: two tools that record the same I/O
/// stamp it µs apart, so that events of different CPUs can change places.
pub fn block_events(events: &[Event]) -> Vec<(String, u64)> {
    let of_block = |event: &&Event| {
        matches!(
            event.what,
            EventKind::BioQueue(_)
                | EventKind::BioRemap { .. }
                | EventKind::BioSplit { .. }
                | EventKind::BackMerge(_)
                | EventKind::FrontMerge(_)
                | EventKind::GetRequest(_)
                | EventKind::Insert(_)
                | EventKind::Issue(_)
                | EventKind::Requeue(_)
                | EventKind::Complete { .. }
        )
    };
    let mut found: Vec<_> = events
        .iter()
        .filter(of_block)
        .map(|event| (format!("{:?}", event.what), event.time_ns))
        .collect();
    found.sort();
    found
}
