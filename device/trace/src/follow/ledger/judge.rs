// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which requests an ended I/O asked for and waited for.

use super::open_io::{Commit, OpenIo, Part};
use super::results::Results;
use crate::event::Dev;
use crate::intervals::Intervals;
use crate::io::{Io, Spans};

/// The requests that the I/O asked for: all but readahead. If there is nothing else, the readahead that
/// completed before the call did: a reader with a cache miss waits for the readahead that it has just started.
/// `None`: one of them is unknown.
pub(super) fn asked_for(io: &OpenIo, results: &Results) -> Option<Vec<Part>> {
    if io.work.parts.iter().any(|part| results.request(part.request).is_none()) {
        return None;
    }
    let all_ahead = io.work.parts.iter().all(|part| part.ahead);
    let ended = |part: &Part| {
        let request = results.request(part.request);
        request.is_some_and(|request| request.end_ns() <= io.io.exited_ns)
    };
    let keep = |part: &&Part| if all_ahead { ended(part) } else { !part.ahead };
    Some(io.work.parts.iter().filter(keep).copied().collect())
}

/// The call was in progress all through the commit; it had requests on that device and none of its own pending
/// when the commit ended. Those of a write, which need not be synchronous, must have completed before the commit
/// began.
pub(super) fn waited_for(commit: &Commit, io: &OpenIo, own: &[Part], results: &Results) -> bool {
    let Some(ended_ns) = commit.ended_ns else { return false };
    let dev = |part: &Part| results.request(part.request).map(|request| request.dev);
    let commit_devs = commit.work.parts.iter().map(dev).collect::<Option<Vec<Dev>>>();
    let Some(commit_devs) = commit_devs else { return false };
    let since_ns = if io.io.call.is_write() { commit.begun_ns } else { ended_ns };
    let under_way = |part: &Part| {
        let Some(request) = results.request(part.request) else { return true };
        part.from_ns <= ended_ns && since_ns < request.end_ns()
    };
    let same = |part: &Part| dev(part).is_some_and(|dev| commit_devs.contains(&dev));
    own.iter().any(same) && !own.iter().any(under_way)
}

pub(super) fn parts_of(commit: &Commit, results: &Results) -> Vec<Part> {
    let part = |part: &Part| {
        let from_ns = results.request(part.request)?.begin_ns();
        Some(Part { request: part.request, from_ns, ahead: false, first: false })
    };
    commit.work.parts.iter().filter_map(part).collect()
}

pub(super) fn make_io(open: &OpenIo, parts: &[Part], results: &Results) -> Io {
    let of = |part: &Part| Some((results.request(part.request)?, part.from_ns));
    let requests = || parts.iter().filter_map(of);
    // In the block layer, the driver or the device, for somebody whose bio came at `from_ns`.
    let present = requests().map(|(request, from_ns)| (from_ns, request.end_ns()));
    let with_device = requests().flat_map(|(request, _)| request.with_device().to_vec());
    let moved = || requests().filter(|(request, _)| request.error == 0).map(|(r, _)| r.bytes).sum();
    let during_ns = (open.io.entered_ns, open.io.exited_ns);
    Io {
        bytes: open.bytes.unwrap_or_else(moved),
        requests: parts.iter().map(|part| part.request).collect(),
        spans: Spans::of(during_ns, &Intervals::new(present), &Intervals::new(with_device)),
        ..open.io.clone()
    }
}
