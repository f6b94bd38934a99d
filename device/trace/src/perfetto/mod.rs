// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes a trace as a file for the Perfetto UI (<https://ui.perfetto.dev>): each layer is a row of
//! bars, with arrows between the bars of one request. `steady trace --perfetto` calls it.
//!
//! `slices` makes the bars, and `tracks` places them, with [`lanes`] for concurrent slices.
//! `arguments` has the text and values of each slice, and `strings` interns them. [`messages`] has
//! Perfetto's formats.

mod arguments;
pub mod lanes;
pub mod messages;
mod slices;
mod strings;
mod tracks;

use std::io::{self, BufWriter, Write};

use prost::Message;

use crate::io::Trace;
use crate::report::rows::Item;
use crate::report::words::Names;
use messages::{
    CLOCK_MONOTONIC, CLOCK_OF_SEQUENCE, Clock, ClockSnapshot, INCREMENTAL_STATE_CLEARED,
};
use messages::{NEEDS_INCREMENTAL_STATE, TracePacket, TracePacketDefaults};
use tracks::Timeline;

const BUFFER_BYTES: usize = 64 << 10;
const SEQUENCE: u32 = 1;

/// Writes a Perfetto trace, with these calls without a request of their own. Its clock is declared
/// as monotonic; the times are those of the trace's source. A device without a name in `names` is
/// shown by its number.
///
/// Strings are written once and times as differences, which keeps the file small.
pub fn write(trace: &Trace, names: &Names, calls: &[Item], out: impl Write) -> io::Result<()> {
    let timeline = Timeline::of(trace, names, calls);
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, out);
    let mut last_ns = timeline.points.first().map_or(0, |(time_ns, _)| *time_ns);
    let clock = |clock_id, is_incremental| Clock { clock_id, timestamp: last_ns, is_incremental };
    let clocks = vec![clock(CLOCK_MONOTONIC, false), clock(CLOCK_OF_SEQUENCE, true)];
    let first = TracePacket {
        clock_snapshot: Some(ClockSnapshot { clocks, primary_trace_clock: CLOCK_MONOTONIC }),
        interned_data: Some(timeline.strings.into_message()),
        sequence_flags: INCREMENTAL_STATE_CLEARED,
        trace_packet_defaults: Some(TracePacketDefaults { timestamp_clock_id: CLOCK_OF_SEQUENCE }),
        first_packet_on_sequence: true,
        ..TracePacket::default()
    };
    write_packet(&mut out, first)?;
    for track in timeline.tracks {
        let track_descriptor = Some(track);
        write_packet(&mut out, TracePacket { track_descriptor, ..TracePacket::default() })?;
    }
    for (time_ns, event) in timeline.points {
        let packet = TracePacket {
            timestamp: Some(time_ns - last_ns),
            track_event: Some(event),
            sequence_flags: NEEDS_INCREMENTAL_STATE,
            ..TracePacket::default()
        };
        last_ns = time_ns;
        write_packet(&mut out, packet)?;
    }
    out.flush()
}

fn write_packet(out: &mut impl Write, packet: TracePacket) -> io::Result<()> {
    let packet = TracePacket { trusted_packet_sequence_id: SEQUENCE, ..packet };
    out.write_all(&messages::Trace { packet: vec![packet] }.encode_to_vec())
}
