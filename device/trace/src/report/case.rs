// SPDX-License-Identifier: MIT OR Apache-2.0
//! Looks for the causes of one I/O or request.

use super::cause::{Cause, Fact, Other};
use super::medians::DeviceMedians;
use super::own_time::OwnTime;
use super::words::{inode, op_word, origin_word};
use crate::event::OpKind;
use crate::intervals::Intervals;
use crate::io::{Io, Mark, Origin, Piece, Request, Trace};

/// A cause accounts for at least one part in so many of the whole time.
const SHARE_MIN: u64 = 10;
/// The device is slow from so many times its median on.
const SLOW_FROM: u64 = 2;

/// All requests in the order of their end, so that those of a time are found without looking at each.
pub struct ByEnd {
    /// Begin, end, and place in [`Trace::requests`].
    requests: Vec<(u64, u64, usize)>,
    /// The earliest begin of each and all behind it.
    begin_min_ns: Vec<u64>,
}

impl ByEnd {
    pub fn of(trace: &Trace) -> ByEnd {
        ByEnd::of_lives(trace.requests.iter().map(Request::life))
    }

    fn of_lives(lives_ns: impl Iterator<Item = (u64, u64)>) -> ByEnd {
        let mut requests: Vec<_> =
            lives_ns.enumerate().map(|(index, (begin, end))| (begin, end, index)).collect();
        requests.sort_by_key(|(_, end_ns, _)| *end_ns);
        let mut begin_min_ns: Vec<u64> = Vec::with_capacity(requests.len());
        for (begin_ns, ..) in requests.iter().rev() {
            let behind_ns = begin_min_ns.last().copied().unwrap_or(u64::MAX);
            begin_min_ns.push(behind_ns.min(*begin_ns));
        }
        begin_min_ns.reverse();
        ByEnd { requests, begin_min_ns }
    }

    /// Those that were queued or in flight between two moments, in the order of the trace.
    fn during(&self, (from_ns, to_ns): (u64, u64)) -> Vec<usize> {
        let first = self.requests.partition_point(|(_, end_ns, _)| *end_ns <= from_ns);
        let later = self.requests[first..].iter().zip(&self.begin_min_ns[first..]);
        let mut found: Vec<usize> = later
            .take_while(|(_, begin_min_ns)| **begin_min_ns < to_ns)
            .filter(|((begin_ns, ..), _)| *begin_ns < to_ns)
            .map(|((.., index), _)| *index)
            .collect();
        found.sort_unstable();
        found
    }
}

/// What is looked at: an I/O with its requests, or a request on its own.
pub struct Case<'a> {
    trace: &'a Trace,
    /// Indices into [`Trace::requests`].
    own: &'a [usize],
    during_ns: (u64, u64),
    in_block: Intervals,
    device: Intervals,
    io: Option<&'a Io>,
}

impl<'a> Case<'a> {
    /// An I/O.
    pub fn of_io(trace: &'a Trace, io: &'a Io) -> Case<'a> {
        let case = Case::new(trace, &io.requests, (io.entered_ns, io.exited_ns));
        Case { io: Some(io), ..case }
    }

    /// From `during_ns.0` to `during_ns.1`, with these requests.
    pub fn new(trace: &'a Trace, own: &'a [usize], during_ns: (u64, u64)) -> Case<'a> {
        let requests = || own.iter().map(|index| &trace.requests[*index]);
        let device = Intervals::new(requests().flat_map(|own| own.with_device().to_vec()));
        let started = |own: &Request| own.marks.device_start_ns().unwrap_or_else(|| own.end_ns());
        let queued = Intervals::new(requests().map(|own| (own.begin_ns(), started(own))));
        let between = Intervals::new(requests().flat_map(|own| gaps(own).0));
        let in_block = queued.union(&between).minus(&device);
        Case { trace, own, during_ns, in_block, device, io: None }
    }

    /// All causes, the longest first.
    pub fn causes(&self, medians: &DeviceMedians, all: &ByEnd) -> Vec<Cause> {
        let around = self.around(all);
        let mut causes: Vec<Cause> = [
            self.behind(&around),
            self.shared(&around),
            self.flush(&around),
            self.discard(&around),
            self.requeued(),
            self.pieces(),
            self.cut(),
            self.merged(),
            self.device_slow(&around, medians),
            self.tag_wait(),
            self.journal(&around),
            self.writeback(&around),
        ]
        .into_iter()
        .flatten()
        .collect();
        causes.extend(self.own_time());
        let whole_ns = self.during_ns.1.saturating_sub(self.during_ns.0);
        causes.retain(|cause| cause.ns > 0 && cause.ns * SHARE_MIN >= whole_ns);
        causes.sort_by_key(|cause| std::cmp::Reverse(cause.ns));
        causes
    }

    fn requests(&self) -> impl Iterator<Item = &'a Request> {
        self.own.iter().map(|index| &self.trace.requests[*index])
    }

    /// All other requests of the same devices that were queued or in flight in that time.
    fn around(&self, all: &ByEnd) -> Vec<&'a Request> {
        let same = |other: &Request| self.requests().any(|own| own.dev == other.dev);
        let others = all.during(self.during_ns).into_iter();
        others
            .filter(|index| !self.own.contains(index))
            .map(|index| &self.trace.requests[index])
            .filter(|other| same(other))
            .collect()
    }

    fn behind(&self, around: &[&Request]) -> Option<Cause> {
        let (requests, ns) = met(around, |_| true, &self.in_block);
        let longest = Box::new(longest(around, &self.in_block)?);
        Some(Fact::Behind { requests, longest }.lasting(ns))
    }

    fn shared(&self, around: &[&Request]) -> Option<Cause> {
        let moves = |other: &&&Request| matches!(other.op.kind, OpKind::Read | OpKind::Write);
        let around: Vec<&Request> = around.iter().filter(moves).copied().collect();
        let (requests, ns) = met(&around, |_| true, &self.device);
        let longest = Box::new(longest(&around, &self.device)?);
        Some(Fact::Shared { requests, longest }.lasting(ns))
    }

    fn flush(&self, around: &[&Request]) -> Option<Cause> {
        let (own, requests, ns) = self.of_kind(around, OpKind::Flush)?;
        Some(Fact::Flush { own, requests }.lasting(ns))
    }

    fn discard(&self, around: &[&Request]) -> Option<Cause> {
        let (own, requests, ns) = self.of_kind(around, OpKind::Discard)?;
        Some(Fact::Discard { own, requests }.lasting(ns))
    }

    /// Its own requests of that kind if it has one, or else those of others.
    fn of_kind(&self, around: &[&Request], kind: OpKind) -> Option<(bool, u64, u64)> {
        let own: Vec<&Request> = self.requests().filter(|own| own.op.kind == kind).collect();
        let (requests, ns) = met(&own, |_| true, &self.device);
        if requests > 0 {
            return Some((true, requests, ns));
        }
        let busy = self.in_block.union(&self.device);
        let (requests, ns) = met(around, |other| other.op.kind == kind, &busy);
        (requests > 0).then_some((false, requests, ns))
    }

    fn requeued(&self) -> Option<Cause> {
        let times: u64 = self.requests().map(|own| u64::from(own.requeues)).sum();
        let back = Intervals::new(self.requests().flat_map(|own| gaps(own).1));
        (times > 0).then(|| Fact::Requeued { times }.lasting(back.total_ns()))
    }

    fn pieces(&self) -> Option<Cause> {
        let split = || self.requests().filter(|own| served_pieces(own) > 1);
        let between = Intervals::new(split().flat_map(|own| {
            let (all, back) = gaps(own);
            Intervals::new(all).minus(&Intervals::new(back)).to_vec()
        }));
        let pieces = split().map(served_pieces).sum();
        (pieces > 0).then(|| Fact::Pieces { pieces }.lasting(between.total_ns()))
    }

    fn cut(&self) -> Option<Cause> {
        let parts = || self.requests().filter(|own| own.cut_from_bio).map(Request::end_ns);
        let ns = parts().max()? - parts().min()?;
        Some(Fact::Cut { requests: parts().count() as u64 }.lasting(ns))
    }

    fn merged(&self) -> Option<Cause> {
        let grown = |own: &&Request| !own.merged_queued_ns.is_empty();
        let took = |own: &Request| {
            own.merged_queued_ns.iter().max().map_or(0, |last| last.saturating_sub(own.begin_ns()))
        };
        let longest = self.requests().filter(grown).max_by_key(|own| took(own))?;
        Some(Fact::Merged { bios: longest.merged_queued_ns.len() as u64 }.lasting(took(longest)))
    }

    fn device_slow(&self, around: &[&Request], medians: &DeviceMedians) -> Option<Cause> {
        let excess = |own: &'a Request| {
            let device = own.with_device();
            let (p50_ns, of_count) = medians.of(own)?;
            let slow = device.total_ns() >= p50_ns * SLOW_FROM;
            slow.then(|| (device.total_ns() - p50_ns, p50_ns, of_count, device, own))
        };
        let (ns, p50_ns, of_count, device, own) =
            self.requests().filter_map(excess).max_by_key(|(ns, ..)| *ns)?;
        let (others, _) = met(around, |_| true, &device);
        let device_ns = device.total_ns();
        let (op, bytes) = (op_word(own.op.kind), own.bytes);
        Some(Fact::DeviceSlow { op, bytes, device_ns, p50_ns, of_count, others }.lasting(ns))
    }

    fn tag_wait(&self) -> Option<Cause> {
        let wait = |own: &Request| {
            let queued_ns = own.marks.get(Mark::Queued)?;
            Some((queued_ns, own.marks.get(Mark::GotRequest)?))
        };
        let waits = Intervals::new(self.requests().filter_map(wait));
        Some(Fact::TagWait.lasting(waits.total_ns()))
    }

    fn journal(&self, around: &[&Request]) -> Option<Cause> {
        let (requests, ns) = self.beside(around, |origin| origin == Origin::Journal)?;
        Some(Fact::Journal { requests }.lasting(ns))
    }

    /// A read does not wait for writeback.
    fn writeback(&self, around: &[&Request]) -> Option<Cause> {
        if self.requests().all(|own| own.op.kind == OpKind::Read) {
            return None;
        }
        let is_writeback = |origin| matches!(origin, Origin::Writeback(_));
        let (requests, ns) = self.beside(around, is_writeback)?;
        Some(Fact::Writeback { requests }.lasting(ns))
    }

    /// What its own thread did while none of its requests was queued or in flight.
    fn own_time(&self) -> Vec<Cause> {
        let Some((io, served_ns)) = self.io.zip(self.requests().map(Request::end_ns).max()) else {
            return Vec::new();
        };
        OwnTime::new(self.trace, io, &self.idle(), served_ns).causes()
    }

    /// When none of its requests was queued or in flight.
    fn idle(&self) -> Intervals {
        Intervals::new([self.during_ns]).minus(&Intervals::new(self.requests().map(Request::life)))
    }

    /// Requests of others that were queued or in flight when none of its own was: how many, and how long.
    fn beside(&self, around: &[&Request], of: impl Fn(Origin) -> bool) -> Option<(u64, u64)> {
        let idle = self.idle();
        let others = around.iter().filter(|other| of(other.origin)).map(|other| other.life());
        let met: Vec<(u64, u64)> =
            others.filter(|life| !Intervals::new([*life]).overlap(&idle).is_empty()).collect();
        let requests = met.len() as u64;
        let ns = Intervals::new(met).overlap(&idle).total_ns();
        (requests > 0).then_some((requests, ns))
    }
}

/// The one that was in flight for most of that time.
fn longest(requests: &[&Request], when: &Intervals) -> Option<Other> {
    let overlap_ns = |request: &Request| request.with_device().overlap(when).total_ns();
    let longest = requests.iter().max_by_key(|request| overlap_ns(request))?;
    Some(Other {
        op: op_word(longest.op.kind),
        bytes: longest.bytes,
        sector: longest.sector,
        pid: longest.pid,
        comm: longest.comm.to_string(),
        origin: origin_word(longest.origin),
        inode: inode(longest.origin),
        overlap_ns: overlap_ns(longest),
        device_ns: longest.with_device().total_ns(),
        pieces: served_pieces(longest).max(1),
    })
}

/// How many of these requests were in flight in that time, and how long altogether.
fn met(requests: &[&Request], which: impl Fn(&Request) -> bool, when: &Intervals) -> (u64, u64) {
    let stays: Vec<Intervals> = requests
        .iter()
        .filter(|request| which(request))
        .map(|request| request.with_device().overlap(when))
        .filter(|stay| !stay.is_empty())
        .collect();
    let all = Intervals::new(stays.iter().flat_map(Intervals::iter));
    (stays.len() as u64, all.total_ns())
}

/// In how many pieces it was served, 0 if whole; a dispatch that was requeued is none.
fn served_pieces(request: &Request) -> u64 {
    request.pieces.iter().filter(|piece| piece.bytes > 0).count() as u64
}

type Gaps = Vec<(u64, u64)>;

/// The gaps between dispatches: all, and those after a requeue.
fn gaps(request: &Request) -> (Gaps, Gaps) {
    let gap = |pair: &[Piece]| (pair[0].ended_ns, pair[1].issued_ns);
    let pairs = || request.pieces.windows(2);
    (pairs().map(gap).collect(), pairs().filter(|pair| pair[0].bytes == 0).map(gap).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One that lasts long between short ones, in any order.
    const LIVES_NS: [(u64, u64); 7] =
        [(5, 90), (0, 3), (20, 30), (22, 24), (30, 31), (89, 95), (96, 99)];

    #[test]
    fn those_of_a_time_are_found_as_by_looking_at_each() {
        let all = ByEnd::of_lives(LIVES_NS.into_iter());
        for from_ns in 0..100 {
            for to_ns in from_ns + 1..101 {
                let during = |(begin, end): (u64, u64)| begin < to_ns && end > from_ns;
                let places = 0..LIVES_NS.len();
                let expected: Vec<usize> = places.filter(|at| during(LIVES_NS[*at])).collect();
                assert_eq!(all.during((from_ns, to_ns)), expected, "{from_ns} to {to_ns}");
            }
        }
    }
}
