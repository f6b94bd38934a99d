// SPDX-License-Identifier: MIT OR Apache-2.0
//! In which layer an I/O is at each moment.

use super::super::io::{Mark, Request, Spans};

/// A time in ns, and the one after the last.
pub(super) type Interval = (u64, u64);

/// When `request` was in the device.
pub(super) fn stays(request: &Request) -> Vec<Interval> {
    if request.pieces.is_empty() {
        let marks = &request.marks;
        return marks.device_start_ns().zip(marks.device_end_ns()).into_iter().collect();
    }
    let of = |piece: &super::super::io::Piece| {
        let start = piece.hardware_start_ns.unwrap_or(piece.issued_ns);
        (start, piece.hardware_done_ns.unwrap_or(piece.ended_ns))
    };
    request.pieces.iter().map(of).collect()
}

/// When `request` was in the block layer, the driver or the device, for somebody whose bio came at `from_ns`.
pub(super) fn presence(request: &Request, from_ns: u64) -> Interval {
    (from_ns, request.marks.get(Mark::Completed).unwrap_or(from_ns))
}

/// The spans of an I/O from `entered_ns` to `exited_ns`. `present` and `with_device` may overlap and reach over
/// the ends.
pub(super) fn spans(
    entered_ns: u64,
    exited_ns: u64,
    present: Vec<Interval>,
    with_device: Vec<Interval>,
) -> Spans {
    let clip = |intervals| union(intervals, entered_ns, exited_ns);
    let device = clip(with_device.clone());
    let busy = clip(present.into_iter().chain(with_device).collect());
    let (mut submission_ns, mut at_ns) = (0, entered_ns);
    for (begin, end) in &busy {
        submission_ns += begin - at_ns;
        at_ns = *end;
    }
    let device_ns = length(&device);
    Spans {
        submission_ns,
        block_ns: length(&busy) - device_ns,
        device_ns,
        post_ns: exited_ns - at_ns,
    }
}

/// The parts between `from_ns` and `to_ns`, in order and apart.
fn union(mut intervals: Vec<Interval>, from_ns: u64, to_ns: u64) -> Vec<Interval> {
    for (begin, end) in &mut intervals {
        *begin = (*begin).clamp(from_ns, to_ns);
        *end = (*end).clamp(from_ns, to_ns);
    }
    intervals.retain(|(begin, end)| begin < end);
    intervals.sort_unstable();
    let mut apart: Vec<Interval> = Vec::with_capacity(intervals.len());
    for (begin, end) in intervals {
        match apart.last_mut() {
            Some(last) if begin <= last.1 => last.1 = last.1.max(end),
            _ => apart.push((begin, end)),
        }
    }
    apart
}

fn length(apart: &[Interval]) -> u64 {
    apart.iter().map(|(begin, end)| end - begin).sum()
}
