// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file: packets of one sequence, with strings written once and times as differences, which keeps it small.

use std::collections::HashMap;
use std::io::{self, Write};

use prost::Message;

use super::messages::{
    CLOCK_MONOTONIC, CLOCK_OF_SEQUENCE, Clock, ClockSnapshot, Data, INCREMENTAL_STATE_CLEARED,
    InternedData, InternedName, NEEDS_INCREMENTAL_STATE, Trace, TracePacket, TracePacketDefaults,
    TrackDescriptor, TrackEvent,
};

const FLUSH_BYTES: usize = 64 << 10;
const SEQUENCE: u32 = 1;

/// Writes packets, those with events in the order of time.
pub struct Packets<W> {
    out: W,
    unwritten: Vec<u8>,
    last_ns: u64,
    /// Of slices.
    pub names: Strings,
    pub argument_names: Strings,
    /// Of arguments that are words.
    pub values: Strings,
}

impl<W: Write> Packets<W> {
    /// Begins a file, in which no event is before `begin_ns`.
    pub fn begin(out: W, begin_ns: u64) -> io::Result<Packets<W>> {
        let mut packets = Packets {
            out,
            unwritten: Vec::new(),
            last_ns: begin_ns,
            names: Strings::default(),
            argument_names: Strings::default(),
            values: Strings::default(),
        };
        let clock =
            |clock_id, is_incremental| Clock { clock_id, timestamp: begin_ns, is_incremental };
        let clocks = vec![clock(CLOCK_MONOTONIC, false), clock(CLOCK_OF_SEQUENCE, true)];
        packets.packet(TracePacket {
            data: Some(Data::ClockSnapshot(ClockSnapshot {
                clocks,
                primary_trace_clock: CLOCK_MONOTONIC,
            })),
            sequence_flags: INCREMENTAL_STATE_CLEARED,
            trace_packet_defaults: Some(TracePacketDefaults {
                timestamp_clock_id: CLOCK_OF_SEQUENCE,
            }),
            first_packet_on_sequence: true,
            ..TracePacket::default()
        })?;
        Ok(packets)
    }

    /// A track, before its first event and before those in it.
    pub fn track(&mut self, track: TrackDescriptor) -> io::Result<()> {
        let data = Some(Data::TrackDescriptor(track));
        self.packet(TracePacket { data, ..TracePacket::default() })
    }

    /// An event, not before the one before.
    pub fn event(&mut self, time_ns: u64, event: TrackEvent) -> io::Result<()> {
        let interned = InternedData {
            event_names: self.names.take_new(),
            debug_annotation_names: self.argument_names.take_new(),
            debug_annotation_string_values: self.values.take_new(),
        };
        let packet = TracePacket {
            timestamp: Some(time_ns - self.last_ns),
            data: Some(Data::TrackEvent(event)),
            interned_data: (interned != InternedData::default()).then_some(interned),
            sequence_flags: NEEDS_INCREMENTAL_STATE,
            ..TracePacket::default()
        };
        self.last_ns = time_ns;
        self.packet(packet)
    }

    /// Writes what is left.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.write_all(&self.unwritten)?;
        self.out.flush()
    }

    fn packet(&mut self, packet: TracePacket) -> io::Result<()> {
        let packet = TracePacket { trusted_packet_sequence_id: SEQUENCE, ..packet };
        Trace { packet: vec![packet] }.encode(&mut self.unwritten)?;
        if self.unwritten.len() >= FLUSH_BYTES {
            self.out.write_all(&self.unwritten)?;
            self.unwritten.clear();
        }
        Ok(())
    }
}

/// Strings that have numbers, from 1.
#[derive(Default)]
pub struct Strings {
    numbers: HashMap<String, u64>,
    new: Vec<InternedName>,
}

impl Strings {
    /// The number of `text`, which is written with the next event if it is new.
    pub fn number(&mut self, text: &str) -> u64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let iid = self.numbers.len() as u64 + 1;
        self.numbers.insert(text.to_string(), iid);
        self.new.push(InternedName { iid, name: text.to_string() });
        iid
    }

    fn take_new(&mut self) -> Vec<InternedName> {
        std::mem::take(&mut self.new)
    }
}
