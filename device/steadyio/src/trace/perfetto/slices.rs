// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is drawn: a slice for each stay of a request in a layer, and one for each I/O.
//!
//! The slices of a request follow each other without a gap as far as its marks are known. A layer in which it
//! spent no time has none, but the device always has one.

use crate::trace::io::{Mark, Origin, Request, Trace};
use crate::trace::report::steps::begin_ns;

/// Where a request can be, from the program to the device and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layer {
    /// From the system call (or the bio before, of the same call) to its bio.
    Submission,
    /// From its bio to its issue to the driver, and between two pieces.
    Block,
    /// From its issue to the start of the hardware, where an event tells that.
    Driver,
    /// With the device.
    Device,
    /// From the device's end to its own end; for the last request of an I/O, to the return to the program.
    Completion,
}

impl Layer {
    /// All, in order.
    pub const ALL: [Layer; 5] =
        [Layer::Submission, Layer::Block, Layer::Driver, Layer::Device, Layer::Completion];

    /// The name of its tracks.
    pub fn title(self) -> &'static str {
        match self {
            Layer::Submission => "submission (VFS)",
            Layer::Block => "block layer",
            Layer::Driver => "driver",
            Layer::Device => "device",
            Layer::Completion => "completion",
        }
    }
}

/// One bar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Where.
    pub layer: Layer,
    /// In ns.
    pub begin_ns: u64,
    /// In ns, not before `begin_ns`.
    pub end_ns: u64,
    /// Index of the piece in [`Request::pieces`], on the device.
    pub piece: Option<usize>,
    /// What it waited for, one after the other: what, from when and until when, in ns.
    pub waits: Vec<(&'static str, u64, u64)>,
}

impl Slice {
    fn new(layer: Layer, begin_ns: u64, end_ns: u64) -> Slice {
        let end_ns = end_ns.max(begin_ns);
        Slice { layer, begin_ns, end_ns, piece: None, waits: Vec::new() }
    }
}

/// What the calls of programs say about each request, by its index, in ns: when its I/O began to work on it, and
/// when the call returned that waited for it last.
pub struct Calls {
    begin_ns: Vec<Option<u64>>,
    return_ns: Vec<Option<u64>>,
}

impl Calls {
    /// Of all requests of a trace.
    pub fn of(trace: &Trace) -> Calls {
        let none = || vec![None; trace.requests.len()];
        let mut calls = Calls { begin_ns: none(), return_ns: none() };
        for (number, io) in trace.ios.iter().enumerate() {
            let request = |index: &usize| &trace.requests[*index];
            let own = |index: &&usize| request(index).origin == Origin::Io(number);
            // The thread makes one bio after the other: the turn of one begins when the one before was queued.
            let mut turn_ns = io.entered_ns;
            for index in io.requests.iter().filter(own) {
                calls.begin_ns[*index] = Some(turn_ns);
                turn_ns = turn_ns.max(request(index).marks.get(Mark::Queued).unwrap_or(0));
            }
            if let Some(last) = io.requests.iter().filter(own).max_by_key(|i| end_ns(request(i))) {
                calls.return_ns[*last] = Some(io.exited_ns);
            }
        }
        calls
    }
}

/// The slices of the request with this index, in the order of its way.
pub fn of_request(trace: &Trace, calls: &Calls, index: usize) -> Vec<Slice> {
    let request = &trace.requests[index];
    let mut slices = Vec::new();
    slices.extend(submission(request, calls.begin_ns[index]));
    slices.extend(before_issue(request));
    slices.extend(with_device(request));
    let end_ns = end_ns(request).max(calls.return_ns[index].unwrap_or(0));
    slices.push(Slice::new(Layer::Completion, device_end_ns(request), end_ns));
    slices.retain(|slice| slice.layer == Layer::Device || slice.begin_ns < slice.end_ns);
    slices
}

/// When it ends, in ns.
pub fn end_ns(request: &Request) -> u64 {
    request.marks.get(Mark::Completed).unwrap_or(0).max(device_end_ns(request))
}

fn device_end_ns(request: &Request) -> u64 {
    let begin_ns = request.marks.device_start_ns().unwrap_or(begin_ns(request));
    let piece_ns = request.pieces.last().map(|piece| piece.ended_ns);
    piece_ns.or(request.marks.device_end_ns()).unwrap_or(begin_ns).max(begin_ns)
}

fn submission(request: &Request, begin_ns: Option<u64>) -> Option<Slice> {
    Some(Slice::new(Layer::Submission, begin_ns?, request.marks.get(Mark::Queued)?))
}

fn before_issue(request: &Request) -> Option<Slice> {
    let issued_ns = request.marks.get(Mark::Issued)?;
    let passed: Vec<(Mark, u64)> = Mark::ALL[..=Mark::Issued as usize]
        .iter()
        .filter_map(|mark| Some((*mark, request.marks.get(*mark)?)))
        .filter(|(_, time_ns)| *time_ns <= issued_ns)
        .collect();
    let mut slice = Slice::new(Layer::Block, passed.first()?.1, issued_ns);
    let waits = passed.windows(2).map(|pair| (wait(pair[0].0, pair[1].0), pair[0].1, pair[1].1));
    slice.waits = waits.filter_map(|(what, from, to)| Some((what?, from, to))).collect();
    Some(slice)
}

/// What lies between two marks, of which the one between may not be known.
fn wait(from: Mark, to: Mark) -> Option<&'static str> {
    match (from, to) {
        (Mark::Queued, Mark::GotRequest) => Some("waits for a tag"),
        (Mark::Queued, Mark::Inserted) => Some("waits for a tag, or plugged"),
        (Mark::GotRequest, Mark::Inserted) => Some("plugged"),
        (Mark::GotRequest, Mark::Issued) => Some("plugged, or in the scheduler"),
        (Mark::Inserted, Mark::Issued) => Some("in the scheduler"),
        _ => None,
    }
}

fn with_device(request: &Request) -> Vec<Slice> {
    if !request.pieces.is_empty() {
        return pieces(request);
    }
    let end_ns = device_end_ns(request);
    let begin_ns = request.marks.device_start_ns().unwrap_or(end_ns);
    let issued_ns = request.marks.get(Mark::Issued).unwrap_or(begin_ns);
    vec![
        Slice::new(Layer::Driver, issued_ns.min(begin_ns), begin_ns),
        Slice::new(Layer::Device, begin_ns, end_ns),
    ]
}

/// The marks of the hardware are of the first and the last piece only, so here the driver counts as device.
fn pieces(request: &Request) -> Vec<Slice> {
    let mut slices: Vec<Slice> = Vec::new();
    for (index, piece) in request.pieces.iter().enumerate() {
        if let Some(before) = slices.last() {
            let mut back = Slice::new(Layer::Block, before.end_ns, piece.issued_ns);
            back.waits = vec![("for its next turn", back.begin_ns, back.end_ns)];
            slices.push(back);
        }
        let slice = Slice::new(Layer::Device, piece.issued_ns, piece.ended_ns);
        slices.push(Slice { piece: Some(index), ..slice });
    }
    slices
}
