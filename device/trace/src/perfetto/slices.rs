// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes the slices to draw: one for each time of a request in a layer, and one for each I/O.
//! `tracks` draws them.
//!
//! The slices of a request follow each other without a gap as far as its marks are known. A layer
//! in which it spent no time has no slice, but the device always has one.

use strum::VariantArray;

use crate::io::{Mark, Origin, Request, Trace};

/// The layers between the program and the device, with the names of their tracks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(const_into_str)]
pub enum Layer {
    /// From the system call (or the previous bio of the same call) to the bio.
    #[strum(serialize = "submission (VFS)")]
    Submission,
    /// From the bio to its issue to the driver, and between two pieces.
    #[strum(serialize = "block layer")]
    Block,
    /// From the issue to the start of the command, if an event shows that.
    #[strum(serialize = "driver")]
    Driver,
    #[default]
    #[strum(serialize = "device")]
    Device,
    /// From the end of the command to the completion of the request or piece; for the last request
    /// of an I/O, to the return to the program.
    #[strum(serialize = "completion")]
    Completion,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// The index in [`Trace::requests`].
    pub request: usize,
    pub layer: Layer,
    pub begin_ns: u64,
    /// The end in ns, not before `begin_ns`.
    pub end_ns: u64,
    /// The index of the piece in [`Request::pieces`], on the device.
    pub piece: Option<usize>,
    /// The waits in order: reason, beginning and end in ns.
    pub waits: Vec<(&'static str, u64, u64)>,
    /// Whether the request's flow connects this slice with one before or after it.
    pub linked: bool,
    /// Whether it is the last slice of a flow with several.
    pub last: bool,
}

impl Slice {
    fn new(layer: Layer, begin_ns: u64, end_ns: u64) -> Slice {
        Slice { layer, begin_ns, end_ns: end_ns.max(begin_ns), ..Slice::default() }
    }

    pub fn when(&self) -> (u64, u64) {
        (self.begin_ns, self.end_ns)
    }
}

/// For each request of system calls, in ns: the time at which its I/O began to work on it, and the
/// return of the last call that waited for it.
pub struct Calls {
    begin_ns: Vec<Option<u64>>,
    return_ns: Vec<Option<u64>>,
}

impl Calls {
    pub fn of(trace: &Trace) -> Calls {
        let none = || vec![None; trace.requests.len()];
        let mut calls = Calls { begin_ns: none(), return_ns: none() };
        for (number, io) in trace.ios.iter().enumerate() {
            let request = |index: &usize| &trace.requests[*index];
            let own = |index: &&usize| request(index).origin == Origin::Io(number);
            // The thread makes one bio after the other. It begins with one when the previous one
            // was queued.
            let mut turn_ns = io.entered_ns;
            for index in io.requests.iter().filter(own) {
                calls.begin_ns[*index] = Some(turn_ns);
                turn_ns = turn_ns.max(request(index).marks.get(Mark::Queued).unwrap_or(0));
            }
            if let Some(last) = io.requests.iter().filter(own).max_by_key(|i| request(i).end_ns()) {
                calls.return_ns[*last] = Some(io.exited_ns);
            }
        }
        calls
    }
}

/// The slices of the request at this index, in time order.
pub fn of_request(trace: &Trace, calls: &Calls, index: usize) -> Vec<Slice> {
    let request = &trace.requests[index];
    let mut slices = Vec::new();
    slices.extend(submission(request, calls.begin_ns[index]));
    slices.extend(before_issue(request));
    slices.extend(from_issue(request, calls.return_ns[index]));
    slices.retain(|slice| slice.layer == Layer::Device || slice.begin_ns < slice.end_ns);
    let count = slices.len();
    let linked = count > 1 || matches!(request.origin, Origin::Io(_));
    let place = |(number, slice)| Slice {
        request: index,
        linked,
        last: linked && number + 1 == count,
        ..slice
    };
    slices.into_iter().enumerate().map(place).collect()
}

fn submission(request: &Request, begin_ns: Option<u64>) -> Option<Slice> {
    Some(Slice::new(Layer::Submission, begin_ns?, request.marks.get(Mark::Queued)?))
}

fn before_issue(request: &Request) -> Option<Slice> {
    let issued_ns = request.marks.get(Mark::Issued)?;
    let passed: Vec<(Mark, u64)> = Mark::VARIANTS[..=Mark::Issued as usize]
        .iter()
        .filter_map(|mark| Some((*mark, request.marks.get(*mark)?)))
        .filter(|(_, time_ns)| *time_ns <= issued_ns)
        .collect();
    let mut slice = Slice::new(Layer::Block, passed.first()?.1, issued_ns);
    let waits = passed.windows(2).map(|pair| (wait(pair[0].0, pair[1].0), pair[0].1, pair[1].1));
    slice.waits = waits.filter_map(|(what, from, to)| Some((what?, from, to))).collect();
    Some(slice)
}

/// The reason for which a request waits between two marks. A mark between them may be unknown.
fn wait(from: Mark, to: Mark) -> Option<&'static str> {
    match (from, to) {
        (Mark::Queued, Mark::GotRequest) => Some("waiting for a tag"),
        (Mark::Queued, Mark::Inserted) => Some("waiting for a tag, or plugged"),
        (Mark::GotRequest, Mark::Inserted) => Some("plugged"),
        (Mark::GotRequest, Mark::Issued) => Some("plugged, or in the scheduler"),
        (Mark::Inserted, Mark::Issued) => Some("in the scheduler"),
        _ => None,
    }
}

/// The slices from the issue to the end, and on to the return of the call that waited for it.
fn from_issue(request: &Request, return_ns: Option<u64>) -> Vec<Slice> {
    let end_ns = request.end_ns().max(return_ns.unwrap_or(0));
    let mut slices: Vec<Slice> = Vec::new();
    let dispatches = request.dispatches();
    for (index, dispatch) in dispatches.iter().enumerate() {
        if let Some(before) = slices.last() {
            let mut back = Slice::new(Layer::Block, before.end_ns, dispatch.issued_ns);
            back.waits = vec![("waiting for the next dispatch", back.begin_ns, back.end_ns)];
            slices.push(back);
        }
        let is_last = index + 1 == dispatches.len();
        let ended_ns = if is_last { end_ns } else { dispatch.ended_ns };
        let (start_ns, done_ns) = (dispatch.start_ns(), dispatch.done_ns());
        let piece = (!request.pieces.is_empty()).then_some(index);
        slices.push(Slice::new(Layer::Driver, dispatch.issued_ns, start_ns));
        slices.push(Slice { piece, ..Slice::new(Layer::Device, start_ns, done_ns) });
        slices.push(Slice::new(Layer::Completion, done_ns, ended_ns));
    }
    slices
}
