// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which requests an ended I/O asked for and waited for.

use super::super::event::Dev;
use super::super::io::{Io, Mark};
use super::drafts::{Draft, Part};
use super::results::Results;
use super::spans::{presence, spans, stays};
use super::tasks::Commit;

/// The requests that the I/O asked for: all but readahead. If there is nothing else, the readahead that
/// completed before the call did: a reader with a cache miss waits for the readahead that it has just started.
/// `None`: one of them is unknown.
pub(super) fn asked_for(draft: &Draft, exited_ns: u64, results: &Results) -> Option<Vec<Part>> {
    if draft.parts.iter().any(|part| results.request(part.request).is_none()) {
        return None;
    }
    let all_ahead = draft.parts.iter().all(|part| part.ahead);
    let ended = |part: &Part| {
        let request = results.request(part.request);
        request
            .and_then(|request| request.marks.get(Mark::Completed))
            .is_some_and(|end| end <= exited_ns)
    };
    let keep = |part: &&Part| if all_ahead { ended(part) } else { !part.ahead };
    Some(draft.parts.iter().filter(keep).copied().collect())
}

/// The call was in progress all through the commit; it had requests on that device and none of its own pending
/// when the commit ended. Those of a write, which need not be synchronous, must have completed before the commit
/// began.
pub(super) fn waited_for(commit: &Commit, draft: &Draft, own: &[Part], results: &Results) -> bool {
    let Some(ended_ns) = commit.ended_ns else { return false };
    let devs = |index: &usize| results.request(*index).map(|request| request.dev);
    let Some(commit_devs) = commit.requests.iter().map(devs).collect::<Option<Vec<Dev>>>() else {
        return false;
    };
    let since_ns = if draft.call.is_write() { commit.begun_ns } else { ended_ns };
    let under_way = |part: &Part| {
        let Some(request) = results.request(part.request) else { return true };
        let (begin, end) = presence(request, part.from_ns);
        begin <= ended_ns && since_ns < end
    };
    let same = |part: &Part| devs(&part.request).is_some_and(|dev| commit_devs.contains(&dev));
    own.iter().any(same) && !own.iter().any(under_way)
}

pub(super) fn parts_of(commit: &Commit, results: &Results) -> Vec<Part> {
    let part = |index: &usize| {
        let request = results.request(*index)?;
        let from_ns = Mark::ALL.iter().find_map(|mark| request.marks.get(*mark))?;
        Some(Part { request: *index, from_ns, ahead: false, first: false })
    };
    commit.requests.iter().filter_map(part).collect()
}

pub(super) fn make_io(draft: &Draft, exited_ns: u64, parts: &[Part], results: &Results) -> Io {
    let of = |part: &Part| Some((results.request(part.request)?, part.from_ns));
    let requests = || parts.iter().filter_map(of);
    let present = requests().map(|(request, from_ns)| presence(request, from_ns)).collect();
    let with_device = requests().flat_map(|(request, _)| stays(request)).collect();
    let moved = || requests().filter(|(request, _)| request.error == 0).map(|(r, _)| r.bytes).sum();
    Io {
        call: draft.call,
        operation: draft.operation,
        pid: draft.pid,
        comm: draft.comm,
        entered_ns: draft.entered_ns,
        exited_ns,
        bytes: draft.bytes.unwrap_or_else(moved),
        requests: parts.iter().map(|part| part.request).collect(),
        spans: spans(draft.entered_ns, exited_ns, present, with_device),
    }
}
