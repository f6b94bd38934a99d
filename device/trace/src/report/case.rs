// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the causes of one I/O's or request's time among the other requests. `worst` calls it.

use std::collections::{BTreeMap, HashSet};
use std::ptr;

use serde_json::{Value, json};

use super::cause::Cause;
use super::distribution::Distribution;
use super::own_time;
use super::rows::Item;
use super::waiting::Waiting;
use super::words::{count, op_and_size, request_text, us};
use super::{by_key, sorted};
use crate::event::{Dev, OpKind};
use crate::intervals::Intervals;
use crate::io::{Mark, Origin, Piece, Request};

/// A cause must account for at least 1/SHARE_MIN of the whole time.
const SHARE_MIN: u64 = 10;
/// The device is slow if it takes this multiple of its median.
const SLOW_FROM: u64 = 2;
/// The number of similar requests that a usual time needs.
const ALIKE_MIN: usize = 10;

/// All requests of a trace, for finding causes.
pub struct Causes<'a> {
    waiting: &'a Waiting<'a>,
    /// Requests sorted by their end, so that those of a period are found quickly.
    by_end: Vec<&'a Request>,
    life_ns_max: u64,
    /// The device times of requests, by operation and size.
    usual: BTreeMap<(Dev, OpKind, u64), Distribution>,
}

impl<'a> Causes<'a> {
    pub fn new(waiting: &'a Waiting<'a>) -> Causes<'a> {
        let mut by_end: Vec<&Request> = waiting.trace.requests.iter().collect();
        by_end.sort_by_key(|request| request.end_ns());
        let lives_ns = by_end.iter().map(|of| of.end_ns().saturating_sub(of.begin_ns()));
        let life_ns_max = lives_ns.max().unwrap_or(0);
        let times = by_end.iter().map(|request| (alike(request), request.with_device().total_ns()));
        let usual = by_key(times).into_iter().filter(|(_, times_ns)| times_ns.len() >= ALIKE_MIN);
        let usual = usual.filter_map(|(key, times_ns)| Some((key, Distribution::of(times_ns)?)));
        Causes { waiting, by_end, life_ns_max, usual: usual.collect() }
    }

    /// All causes of an I/O's or request's time, the longest first.
    pub fn of(&self, item: &Item) -> Vec<Cause> {
        let case = Case::new(item, self.around(item));
        let writes = item.own.iter().any(|own| own.op.kind != OpKind::Read);
        let found = [
            case.behind(),
            case.shared(),
            case.of_kind(OpKind::Flush),
            case.of_kind(OpKind::Discard),
            case.requeued(),
            case.pieces(),
            case.cut(),
            case.merged(),
            case.device_slow(self),
            case.tag_wait(),
            case.pending("journal", |of| of.origin == Origin::Journal),
            // A read does not wait for writeback.
            case.pending("writeback", |of| writes && matches!(of.origin, Origin::Writeback(_))),
        ];
        let mut found: Vec<Cause> = found.into_iter().flatten().collect();
        if item.row.kind == "io" {
            found.extend(own_time::causes(self.waiting, item, &case.idle));
        }
        found.retain(|cause| cause.ns > 0 && cause.ns * SHARE_MIN >= item.row.total_ns);
        sorted(found, |cause| cause.ns)
    }

    /// All other requests of the same devices that were queued or in flight during the item.
    fn around(&self, item: &Item) -> Vec<&'a Request> {
        let (from_ns, to_ns) = item.during_ns();
        let own: HashSet<*const Request> = item.own.iter().map(|own| ptr::from_ref(*own)).collect();
        let devs: HashSet<Dev> = item.own.iter().map(|own| own.dev).collect();
        let first = self.by_end.partition_point(|other| other.end_ns() <= from_ns);
        let later = self.by_end[first..].iter().copied();
        later
            .take_while(|other| other.end_ns() < to_ns.saturating_add(self.life_ns_max))
            .filter(|other| other.begin_ns() < to_ns && devs.contains(&other.dev))
            .filter(|other| !own.contains(&ptr::from_ref(*other)))
            .collect()
    }
}

/// An I/O with its requests, or a request on its own.
struct Case<'a> {
    own: &'a [&'a Request],
    around: Vec<&'a Request>,
    in_block: Intervals,
    device: Intervals,
    /// The times at which none of its requests was queued or in flight.
    idle: Intervals,
}

impl<'a> Case<'a> {
    fn new(item: &'a Item<'a>, around: Vec<&'a Request>) -> Case<'a> {
        let own = &item.own[..];
        let device = Intervals::new(own.iter().flat_map(|own| own.with_device().to_vec()));
        let queued = own.iter().map(|own| (own.begin_ns(), own.dispatches()[0].start_ns()));
        let in_block =
            Intervals::new(queued.chain(own.iter().flat_map(|own| gaps(own).map(|gap| gap.0))));
        let lives = Intervals::new(own.iter().map(|own| own.life()));
        let idle = Intervals::new([item.during_ns()]).minus(&lives);
        Case { own, around, in_block: in_block.minus(&device), device, idle }
    }

    /// Other requests were in flight while it was in the block layer; the longest of them was in
    /// flight for most of that time.
    fn behind(&self) -> Option<Cause> {
        let met = met(&self.around, Request::with_device, &self.in_block)?;
        let requests = count(met.requests, "request");
        let text = format!("queued in the block layer behind {requests} in flight, {}", met.text());
        Some(Cause::new(met.ns, "behind", met.facts(), &text))
    }

    /// Other reads and writes were in flight at the same time, in the driver's or the hardware's
    /// queue.
    fn shared(&self) -> Option<Cause> {
        let moves = |of: &Request| matches!(of.op.kind, OpKind::Read | OpKind::Write);
        let met = met(self.around(moves), Request::with_device, &self.device)?;
        let requests = count(met.requests, "other request");
        let text = format!("in flight together with {requests}, {}", met.text());
        Some(Cause::new(met.ns, "shared", met.facts(), &text))
    }

    /// A request of this kind was in flight while it was in the block layer or in flight; the first
    /// choice is one of its own.
    fn of_kind(&self, kind: OpKind) -> Option<Cause> {
        let own = self.own.iter().filter(|own| own.op.kind == kind);
        let own = met(own, Request::with_device, &self.device);
        let busy = self.in_block.union(&self.device);
        let others = || met(self.around(|of| of.op.kind == kind), Request::with_device, &busy);
        let (is_own, met) = (own.is_some(), own.or_else(others)?);
        let facts = json!({"own": is_own, "requests": met.requests});
        let text = match is_own {
            true => format!("in its own {}", kind.into_str()),
            false => format!("with {} in flight", count(met.requests, kind.into_str())),
        };
        Some(Cause::new(met.ns, kind.into_str(), facts, &text))
    }

    /// The driver requeued it: the time until the next issue.
    fn requeued(&self) -> Option<Cause> {
        let times: u64 = self.own.iter().map(|own| u64::from(own.requeues)).sum();
        let gaps = self.own.iter().flat_map(|own| gaps(own));
        let back = Intervals::new(gaps.filter(|gap| gap.1).map(|gap| gap.0));
        let text = format!("requeued by the driver {}", count(times, "time"));
        Some(Cause::new(back.total_ns(), "requeued", json!({"times": times}), &text))
    }

    /// It was served in pieces: the times between them.
    fn pieces(&self) -> Option<Cause> {
        let split = || self.own.iter().filter(|own| served_pieces(own) > 1);
        let gaps = split().flat_map(|own| gaps(own));
        let between = Intervals::new(gaps.filter(|gap| !gap.1).map(|gap| gap.0));
        let pieces: u64 = split().map(|own| served_pieces(own)).sum();
        let text = format!("between the {pieces} pieces it was served in");
        Some(Cause::new(between.total_ns(), "pieces", json!({"pieces": pieces}), &text))
    }

    /// Its bio was split into several requests: the time from the first completion to the last.
    fn cut(&self) -> Option<Cause> {
        let parts = || self.own.iter().filter(|own| own.cut_from_bio).map(|own| own.end_ns());
        let (ns, requests) = (parts().max()? - parts().min()?, parts().count() as u64);
        let text = format!("between completions: the bio was split into {requests} requests");
        Some(Cause::new(ns, "cut", json!({"requests": requests}), &text))
    }

    /// Further bios were merged into it: the time from its first bio to its last.
    fn merged(&self) -> Option<Cause> {
        let took = |own: &Request| {
            let last_ns = own.merged_queued_ns.iter().max()?;
            Some((last_ns.saturating_sub(own.begin_ns()), own.merged_queued_ns.len() as u64))
        };
        let merged = self.own.iter().filter_map(|own| took(own));
        let (ns, bios) = merged.max_by_key(|(ns, _)| *ns)?;
        let text = format!("until the last bio was merged into it ({})", count(bios, "merge"));
        Some(Cause::new(ns, "merged", json!({"bios": bios}), &text))
    }

    /// The device took at least twice the median of requests with the same operation and size: the
    /// time above the median.
    fn device_slow(&self, causes: &Causes) -> Option<Cause> {
        let excess = |own: &&'a Request| {
            let device_ns = own.with_device().total_ns();
            let usual @ Distribution { p50_ns, .. } = causes.usual.get(&alike(own))?;
            (device_ns >= p50_ns * SLOW_FROM).then(|| (device_ns - p50_ns, usual, *own))
        };
        let slow = self.own.iter().filter_map(excess).max_by_key(|(ns, ..)| *ns);
        let (ns, &Distribution { p50_ns, count: of_count, .. }, own) = slow?;
        let (op, device) = (own.op.kind.into_str(), own.with_device());
        let others = met(&self.around, Request::with_device, &device).map_or(0, |met| met.requests);
        let facts = json!({
            "op": op, "bytes": own.bytes, "device_ns": device.total_ns(), "p50_ns": p50_ns,
            "of_count": of_count, "others": others,
        });
        let concurrent = match others {
            0 => "no other in flight".into(),
            others => format!("{} in flight", count(others, "other")),
        };
        let text = format!(
            "because the device was slower than usual: {} us for {} (median {} of {of_count} alike), {concurrent}",
            us(device.total_ns()),
            op_and_size(op, own.bytes),
            us(p50_ns)
        );
        Some(Cause::new(ns, "device_slow", facts, &text))
    }

    /// The time between its bio and its request, in which it waited for a tag.
    fn tag_wait(&self) -> Option<Cause> {
        let wait =
            |own: &&Request| Some((own.marks.get(Mark::Queued)?, own.marks.get(Mark::GotRequest)?));
        let ns = Intervals::new(self.own.iter().filter_map(wait)).total_ns();
        Some(Cause::new(ns, "tag_wait", json!({}), "waiting for a tag, or throttled"))
    }

    /// Requests that satisfy `is` were queued or in flight while none of its own was.
    fn pending(&self, cause: &'static str, is: impl Fn(&Request) -> bool) -> Option<Cause> {
        let met = met(self.around(is), |of| Intervals::new([of.life()]), &self.idle)?;
        let requests = count(met.requests, &format!("{cause} request"));
        let text = format!("with {requests} pending and none of its own");
        Some(Cause::new(met.ns, cause, json!({"requests": met.requests}), &text))
    }

    fn around(&self, is: impl Fn(&Request) -> bool) -> impl Iterator<Item = &&'a Request> {
        self.around.iter().filter(move |of| is(of))
    }
}

/// Requests present during a period: their number, their total time, and the longest one.
struct Met<'a> {
    requests: u64,
    ns: u64,
    longest: &'a Request,
    longest_ns: u64,
}

/// Of these requests, those whose `times` overlap `when`; `None` if there are none.
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

impl Met<'_> {
    fn facts(&self) -> Value {
        let Request { op, bytes, sector, pid, comm, origin, .. } = self.longest;
        json!({"requests": self.requests, "longest": {
            "op": op.kind.into_str(), "bytes": bytes, "sector": sector, "pid": pid,
            "comm": comm.to_string(), "origin": origin.into_str(), "inode": origin.inode(),
            "overlap_ns": self.longest_ns, "device_ns": self.longest.with_device().total_ns(),
            "pieces": served_pieces(self.longest).max(1),
        }})
    }

    fn text(&self) -> String {
        let pieces = match served_pieces(self.longest) {
            0 | 1 => String::new(),
            pieces => format!(", {pieces} pieces"),
        };
        let (met, all) = (us(self.longest_ns), us(self.longest.with_device().total_ns()));
        format!("longest: {}{pieces}, {met} of its {all} us in flight", request_text(self.longest))
    }
}

/// The key of requests that take the device about the same time.
fn alike(request: &Request) -> (Dev, OpKind, u64) {
    (request.dev, request.op.kind, request.bytes)
}

/// The number of pieces in which it was served; 0 if whole. A requeued dispatch does not count.
fn served_pieces(request: &Request) -> u64 {
    request.pieces.iter().filter(|piece| piece.bytes > 0).count() as u64
}

/// The gaps between dispatches, and whether each follows a requeue.
fn gaps(request: &Request) -> impl Iterator<Item = ((u64, u64), bool)> {
    let gap = |pair: &[Piece]| ((pair[0].ended_ns, pair[1].issued_ns), pair[0].bytes == 0);
    request.pieces.windows(2).map(gap)
}
