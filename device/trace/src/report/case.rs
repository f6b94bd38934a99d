// SPDX-License-Identifier: MIT OR Apache-2.0
//! Looks for the causes of one I/O or request.

use std::collections::BTreeMap;

use super::cause::{Cause, Fact, Other};
use super::distribution::Distribution;
use super::own_time;
use super::rows::Item;
use super::waiting::Waiting;
use super::words::{inode, op_word, origin_word};
use super::{by_key, sorted};
use crate::event::{Dev, OpKind};
use crate::intervals::Intervals;
use crate::io::{Mark, Origin, Piece, Request};

/// A cause accounts for at least one part in so many of the whole time.
const SHARE_MIN: u64 = 10;
/// The device is slow from so many times its median on.
const SLOW_FROM: u64 = 2;
/// With fewer requests alike there is no usual time.
const ALIKE_MIN: usize = 10;

/// All requests of a trace, among which causes are looked for.
pub struct Causes<'a> {
    waiting: &'a Waiting<'a>,
    /// In the order of their end, so that those of a time are found without looking at each.
    by_end: Vec<&'a Request>,
    life_ns_max: u64,
    /// The median time in the device, in ns, and over how many it is, of requests of one operation and size.
    usual: BTreeMap<(Dev, OpKind, u64), (u64, u64)>,
}

impl<'a> Causes<'a> {
    pub fn new(waiting: &'a Waiting<'a>) -> Causes<'a> {
        let mut by_end: Vec<&Request> = waiting.trace.requests.iter().collect();
        by_end.sort_by_key(|request| request.end_ns());
        let lives = by_end.iter().map(|request| request.end_ns() - request.begin_ns());
        let life_ns_max = lives.max().unwrap_or(0);
        let times = by_end.iter().map(|request| (alike(request), request.with_device().total_ns()));
        let usual = by_key(times).into_iter().filter(|(_, times_ns)| times_ns.len() >= ALIKE_MIN);
        let usual = usual.filter_map(|(key, times_ns)| {
            let times = Distribution::of(times_ns)?;
            Some((key, (times.p50_ns, times.count)))
        });
        let usual = usual.collect();
        Causes { waiting, by_end, life_ns_max, usual }
    }

    /// All causes of an I/O's or request's time, the longest first.
    pub fn of(&self, item: &Item) -> Vec<Cause> {
        let case = Case::new(item, self.around(item));
        let facts = [
            case.behind(),
            case.shared(),
            case.of_kind(OpKind::Flush, |own, requests| Fact::Flush { own, requests }),
            case.of_kind(OpKind::Discard, |own, requests| Fact::Discard { own, requests }),
            case.requeued(),
            case.pieces(),
            case.cut(),
            case.merged(),
            case.device_slow(self),
            case.tag_wait(),
            case.journal(),
            case.writeback(),
        ];
        let mut facts: Vec<(u64, Fact)> = facts.into_iter().flatten().collect();
        if item.row.kind == "io" {
            facts.extend(own_time::facts(self.waiting, item, &case.idle));
        }
        facts.retain(|(ns, _)| *ns > 0 && ns * SHARE_MIN >= item.row.total_ns);
        sorted(facts.into_iter().map(|(ns, fact)| fact.lasting(ns)), |cause| cause.ns)
    }

    /// All other requests of the same devices that were queued or in flight in that time.
    fn around(&self, item: &Item) -> Vec<&'a Request> {
        let (from_ns, to_ns) = item.during_ns();
        let is_own = |other: &Request| item.own.iter().any(|own| std::ptr::eq(*own, other));
        let is_same = |other: &Request| item.own.iter().any(|own| own.dev == other.dev);
        let first = self.by_end.partition_point(|other| other.end_ns() <= from_ns);
        let later = self.by_end[first..].iter().copied();
        later
            .take_while(|other| other.end_ns() < to_ns.saturating_add(self.life_ns_max))
            .filter(|other| other.begin_ns() < to_ns && is_same(other) && !is_own(other))
            .collect()
    }
}

type Found = Option<(u64, Fact)>;

/// An I/O with its requests, or a request on its own.
struct Case<'a> {
    own: &'a [&'a Request],
    around: Vec<&'a Request>,
    in_block: Intervals,
    device: Intervals,
    /// When none of its requests was queued or in flight.
    idle: Intervals,
}

impl<'a> Case<'a> {
    fn new(item: &'a Item<'a>, around: Vec<&'a Request>) -> Case<'a> {
        let own = &item.own[..];
        let device = Intervals::new(own.iter().flat_map(|own| own.with_device().to_vec()));
        let started = |own: &Request| own.marks.device_start_ns().unwrap_or_else(|| own.end_ns());
        let queued = own.iter().map(|own| (own.begin_ns(), started(own)));
        let in_block =
            Intervals::new(queued.chain(own.iter().flat_map(|own| gaps(own).map(|gap| gap.0))));
        let lives = Intervals::new(own.iter().map(|own| own.life()));
        let idle = Intervals::new([item.during_ns()]).minus(&lives);
        Case { own, around, in_block: in_block.minus(&device), device, idle }
    }

    fn behind(&self) -> Found {
        let met = met(&self.around, Request::with_device, &self.in_block)?;
        let (requests, longest) = (met.requests, Box::new(other(&met)));
        Some((met.ns, Fact::Behind { requests, longest }))
    }

    fn shared(&self) -> Found {
        let moves = |of: &Request| matches!(of.op.kind, OpKind::Read | OpKind::Write);
        let met = met(self.around(moves), Request::with_device, &self.device)?;
        let (requests, longest) = (met.requests, Box::new(other(&met)));
        Some((met.ns, Fact::Shared { requests, longest }))
    }

    /// Its own requests of that kind if it has one, or else those of others.
    fn of_kind(&self, kind: OpKind, fact: fn(bool, u64) -> Fact) -> Found {
        let own = self.own.iter().filter(|own| own.op.kind == kind);
        if let Some(met) = met(own, Request::with_device, &self.device) {
            return Some((met.ns, fact(true, met.requests)));
        }
        let busy = self.in_block.union(&self.device);
        let met = met(self.around(|of| of.op.kind == kind), Request::with_device, &busy)?;
        Some((met.ns, fact(false, met.requests)))
    }

    fn requeued(&self) -> Found {
        let times = self.own.iter().map(|own| u64::from(own.requeues)).sum();
        let gaps = self.own.iter().flat_map(|own| gaps(own));
        let back = Intervals::new(gaps.filter(|gap| gap.1).map(|gap| gap.0));
        Some((back.total_ns(), Fact::Requeued { times }))
    }

    fn pieces(&self) -> Found {
        let split = || self.own.iter().filter(|own| served_pieces(own) > 1);
        let gaps = split().flat_map(|own| gaps(own));
        let between = Intervals::new(gaps.filter(|gap| !gap.1).map(|gap| gap.0));
        let pieces = split().map(|own| served_pieces(own)).sum();
        Some((between.total_ns(), Fact::Pieces { pieces }))
    }

    fn cut(&self) -> Found {
        let parts = || self.own.iter().filter(|own| own.cut_from_bio).map(|own| own.end_ns());
        let ns = parts().max()? - parts().min()?;
        Some((ns, Fact::Cut { requests: parts().count() as u64 }))
    }

    fn merged(&self) -> Found {
        let took = |own: &Request| {
            let last_ns = own.merged_queued_ns.iter().max()?;
            Some((last_ns.saturating_sub(own.begin_ns()), own.merged_queued_ns.len() as u64))
        };
        let merged = self.own.iter().filter_map(|own| took(own));
        let (ns, bios) = merged.max_by_key(|(ns, _)| *ns)?;
        Some((ns, Fact::Merged { bios }))
    }

    fn device_slow(&self, causes: &Causes) -> Found {
        let excess = |own: &&'a Request| {
            let device_ns = own.with_device().total_ns();
            let usual @ (p50_ns, _) = *causes.usual.get(&alike(own))?;
            (device_ns >= p50_ns * SLOW_FROM).then(|| (device_ns - p50_ns, usual, *own))
        };
        let slow = self.own.iter().filter_map(excess).max_by_key(|(ns, ..)| *ns);
        let (ns, (p50_ns, of_count), own) = slow?;
        let (op, bytes, device) = (op_word(own.op.kind), own.bytes, own.with_device());
        let others = met(&self.around, Request::with_device, &device).map_or(0, |met| met.requests);
        let device_ns = device.total_ns();
        Some((ns, Fact::DeviceSlow { op, bytes, device_ns, p50_ns, of_count, others }))
    }

    fn tag_wait(&self) -> Found {
        let wait =
            |own: &&Request| Some((own.marks.get(Mark::Queued)?, own.marks.get(Mark::GotRequest)?));
        let waits = Intervals::new(self.own.iter().filter_map(wait));
        Some((waits.total_ns(), Fact::TagWait))
    }

    fn journal(&self) -> Found {
        let met = met(self.around(|of| of.origin == Origin::Journal), life, &self.idle)?;
        Some((met.ns, Fact::Journal { requests: met.requests }))
    }

    /// A read does not wait for writeback.
    fn writeback(&self) -> Found {
        let is_writeback = |of: &Request| matches!(of.origin, Origin::Writeback(_));
        let met = met(self.around(is_writeback), life, &self.idle)?;
        let only_reads = self.own.iter().all(|own| own.op.kind == OpKind::Read);
        (!only_reads).then_some((met.ns, Fact::Writeback { requests: met.requests }))
    }

    fn around(&self, is: impl Fn(&Request) -> bool) -> impl Iterator<Item = &&'a Request> {
        self.around.iter().filter(move |of| is(of))
    }
}

/// Requests that were there in a time: how many, how long altogether, and which for longest.
struct Met<'a> {
    requests: u64,
    ns: u64,
    longest: &'a Request,
    longest_ns: u64,
}

/// Those of these requests of which `times` meet `when`; `None` if there is none.
fn met<'a>(
    requests: impl IntoIterator<Item = &'a &'a Request>,
    times: impl Fn(&Request) -> Intervals,
    when: &Intervals,
) -> Option<Met<'a>> {
    let times = requests.into_iter().map(|request| (*request, times(request).overlap(when)));
    let met: Vec<(&Request, Intervals)> = times.filter(|(_, times)| !times.is_empty()).collect();
    let all = Intervals::new(met.iter().flat_map(|(_, times)| times.iter()));
    let (longest, times) = met.iter().max_by_key(|(_, times)| times.total_ns())?;
    let longest_ns = times.total_ns();
    Some(Met { requests: met.len() as u64, ns: all.total_ns(), longest, longest_ns })
}

fn life(request: &Request) -> Intervals {
    Intervals::new([request.life()])
}

/// What the device takes about the same time for.
fn alike(request: &Request) -> (Dev, OpKind, u64) {
    (request.dev, request.op.kind, request.bytes)
}

fn other(met: &Met) -> Other {
    let longest = met.longest;
    Other {
        op: op_word(longest.op.kind),
        bytes: longest.bytes,
        sector: longest.sector,
        pid: longest.pid,
        comm: longest.comm.to_string(),
        origin: origin_word(longest.origin),
        inode: inode(longest.origin),
        overlap_ns: met.longest_ns,
        device_ns: longest.with_device().total_ns(),
        pieces: served_pieces(longest).max(1),
    }
}

/// In how many pieces it was served, 0 if whole; a dispatch that was requeued is none.
fn served_pieces(request: &Request) -> u64 {
    request.pieces.iter().filter(|piece| piece.bytes > 0).count() as u64
}

/// The gaps between dispatches, and whether after a requeue.
fn gaps(request: &Request) -> impl Iterator<Item = ((u64, u64), bool)> {
    let gap = |pair: &[Piece]| ((pair[0].ended_ns, pair[1].issued_ns), pair[0].bytes == 0);
    request.pieces.windows(2).map(gap)
}
