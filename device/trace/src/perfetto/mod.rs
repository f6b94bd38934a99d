// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace as a file for the Perfetto UI (<https://ui.perfetto.dev>): each layer a row of bars, arrows between
//! the bars of one request.
//!
//! [`slices`] has what is drawn, [`tracks`] where, with [`lanes`] for concurrent slices, [`arguments`] the text and
//! values of each; `packets` writes it, in the [`messages`] of Perfetto.

pub mod arguments;
pub mod lanes;
pub mod messages;
mod packets;
pub mod slices;
pub mod tracks;

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::event::Dev;
use crate::io::{Origin, Trace};
use arguments::{Arguments, Value};
use messages::{ChildOrdering, CounterDescriptor, DebugAnnotation, EventType};
use messages::{ProcessDescriptor, ThreadDescriptor, TrackDescriptor, TrackEvent};
use packets::Packets;
use tracks::{MomentKind, Timeline, Track, TrackKind};

/// Writes a Perfetto trace, with these of [`Trace::calls_without_request`]. Its clock is declared as monotonic; the times are those of the trace's source. Devices
/// without a name in `names` have their number.
pub fn write(
    trace: &Trace,
    names: &BTreeMap<Dev, String>,
    calls: &[usize],
    out: impl Write,
) -> io::Result<()> {
    let timeline = Timeline::of(trace, names, calls);
    let begin_ns = timeline.points.first().map_or(0, |point| point.time_ns);
    let mut packets = Packets::begin(out, begin_ns)?;
    for (index, track) in timeline.tracks.iter().enumerate() {
        packets.track(descriptor(index, track))?;
    }
    for point in &timeline.points {
        let mut event = match point.what {
            MomentKind::Request(slice) => begin_request(&mut packets, trace, &timeline, slice),
            MomentKind::Wait(slice, wait) => {
                begin(packets.names.number(timeline.slices[slice].slice.waits[wait].0))
            }
            MomentKind::Io(io) => begin_io(&mut packets, trace, io),
            MomentKind::Call(call) => {
                let call = trace.calls_without_request[call].call.name();
                begin(packets.names.number(call))
            }
            MomentKind::Runs(thread, comm) => {
                begin(packets.names.number(&tracks::thread_name(thread, comm)))
            }
            MomentKind::Waited(what) => begin(packets.names.number(what.title())),
            MomentKind::End => {
                TrackEvent { r#type: EventType::SliceEnd.into(), ..Default::default() }
            }
            MomentKind::Count(count) => TrackEvent {
                r#type: EventType::Counter.into(),
                counter_value: Some(count),
                ..Default::default()
            },
        };
        event.track_uuid = uuid(point.track);
        packets.event(point.time_ns, event)?;
    }
    packets.finish()
}

/// 0 is Perfetto's own.
fn uuid(track: usize) -> u64 {
    track as u64 + 1
}

/// Flows and correlations of a request; 0 is none.
fn request_id(request: usize) -> u64 {
    request as u64 + 1
}

fn descriptor(index: usize, track: &Track) -> TrackDescriptor {
    let (mut process, mut thread) = (None, None);
    match track.kind {
        TrackKind::Slices | TrackKind::Counter => {}
        TrackKind::Process(pid) => {
            process = Some(ProcessDescriptor { pid: pid as i32, process_name: track.name.clone() });
        }
        TrackKind::Thread { process, thread: tid } => {
            let (pid, tid) = (process as i32, tid as i32);
            thread = Some(ThreadDescriptor { pid, tid, thread_name: track.name.clone() });
        }
    }
    TrackDescriptor {
        process,
        thread,
        uuid: uuid(index),
        name: track.name.clone(),
        description: track.description.clone(),
        parent_uuid: track.group.map(uuid),
        counter: (track.kind == TrackKind::Counter).then(CounterDescriptor::default),
        child_ordering: match track.group {
            None => ChildOrdering::Explicit.into(),
            Some(_) => ChildOrdering::Unknown.into(),
        },
        sibling_order_rank: track.rank,
    }
}

fn begin(name_iid: u64) -> TrackEvent {
    TrackEvent { r#type: EventType::SliceBegin.into(), name_iid, ..Default::default() }
}

fn begin_request<W: Write>(
    packets: &mut Packets<W>,
    trace: &Trace,
    timeline: &Timeline,
    index: usize,
) -> TrackEvent {
    let placed = &timeline.slices[index];
    let request = &trace.requests[placed.request];
    let mut name = arguments::request_name(request);
    let mut known = arguments::of_request(placed.request, request);
    if let Some(piece) = placed.slice.piece {
        name.push_str(&format!(" {}/{}", piece + 1, request.pieces.len()));
        known.extend(arguments::of_piece(piece, request));
    }
    let mut event = begin(packets.names.number(&name));
    event.debug_annotations = annotations(packets, known);
    event.correlation_id = Some(request_id(placed.request));
    match (placed.linked, placed.last) {
        (true, true) => event.terminating_flow_ids = vec![request_id(placed.request)],
        (true, false) => event.flow_ids = vec![request_id(placed.request)],
        (false, _) => {}
    }
    event
}

fn begin_io<W: Write>(packets: &mut Packets<W>, trace: &Trace, index: usize) -> TrackEvent {
    let io = &trace.ios[index];
    let mut event = begin(packets.names.number(&arguments::io_name(io)));
    event.debug_annotations = annotations(packets, arguments::of_io(index, io));
    let own = io.requests.iter().copied();
    let own = own.filter(|request| trace.requests[*request].origin == Origin::Io(index));
    event.flow_ids = own.map(request_id).collect();
    event
}

fn annotations<W>(packets: &mut Packets<W>, arguments: Arguments) -> Vec<DebugAnnotation> {
    let annotation = |(name, value): (&'static str, Value)| DebugAnnotation {
        name_iid: packets.argument_names.number(name),
        value: Some(match value {
            Value::Unsigned(number) => messages::Value::Unsigned(number),
            Value::Signed(number) => messages::Value::Signed(number),
            Value::Text(text) => messages::Value::StringIid(packets.values.number(&text)),
        }),
    };
    arguments.into_iter().map(annotation).collect()
}
