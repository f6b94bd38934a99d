// SPDX-License-Identifier: MIT OR Apache-2.0
//! The common interface of all framings. [`super::producer`] calls it.

use std::collections::BTreeMap;

use super::frames::{Frames, Topic};
pub use super::item::{Place, Problem, Step, StreamError, StreamItem};
use super::lines::Lines;
use super::mcap::McapStream;

/// A framing.
#[derive(Debug)]
pub enum Framing {
    /// One record per line.
    Lines(Lines),
    /// Declared topics, and frames of any content.
    Frames(Frames),
    /// MCAP.
    Mcap(Box<McapStream>),
}

impl Framing {
    /// The first item of `data`; None if more data is needed. `data` begins at the end of the last
    /// item. If the stream has `ended`, no more data comes.
    pub fn next(&mut self, data: &[u8], ended: bool) -> Result<Option<Step>, StreamError> {
        match self {
            Framing::Lines(lines) => Ok(lines.next(data, ended)),
            Framing::Frames(frames) => frames.next(data, ended),
            Framing::Mcap(mcap) => mcap.next(data, ended),
        }
    }

    /// The topics by identifier; None for lines.
    pub fn topics(&self) -> Option<&BTreeMap<u16, Topic>> {
        match self {
            Framing::Lines(_) => None,
            Framing::Frames(frames) => Some(frames.topics()),
            Framing::Mcap(mcap) => Some(mcap.topics()),
        }
    }

    /// An error at the present place.
    pub fn error(&self, problem: Problem) -> StreamError {
        match self {
            Framing::Lines(_) => StreamError { offset: 0, problem },
            Framing::Frames(frames) => frames.error(problem),
            Framing::Mcap(mcap) => mcap.error(problem),
        }
    }
}
