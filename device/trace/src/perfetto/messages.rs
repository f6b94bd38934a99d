// SPDX-License-Identifier: MIT OR Apache-2.0
//! The subset of Perfetto's messages that is written, with the field numbers of its
//! `perfetto_trace.proto`.
//!
//! They are declared here, so that a build needs neither `protoc` nor all of Perfetto's messages.
//! With the crate `perfetto_protos` 0.51, which has them, a build takes 2.5 minutes longer.
//! `perfetto_trace.proto` documents the fields; the comments here describe only their use.

use prost::Message;

/// A whole file, or any part of it between two packets.
#[derive(Clone, PartialEq, Message)]
pub struct Trace {
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<TracePacket>,
}

/// One entry of the file.
#[derive(Clone, PartialEq, Message)]
pub struct TracePacket {
    #[prost(message, optional, tag = "6")]
    pub clock_snapshot: Option<ClockSnapshot>,
    /// The time on the clock of [`TracePacketDefaults`].
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    #[prost(uint32, tag = "10")]
    pub trusted_packet_sequence_id: u32,
    /// A [`TrackEvent`], encoded when it is made. There are many, and the encoded form is small.
    #[prost(bytes = "vec", optional, tag = "11")]
    pub track_event: Option<Vec<u8>>,
    #[prost(message, optional, tag = "12")]
    pub interned_data: Option<InternedData>,
    #[prost(uint32, tag = "13")]
    pub sequence_flags: u32,
    #[prost(message, optional, tag = "59")]
    pub trace_packet_defaults: Option<TracePacketDefaults>,
    #[prost(message, optional, tag = "60")]
    pub track_descriptor: Option<TrackDescriptor>,
    #[prost(bool, tag = "87")]
    pub first_packet_on_sequence: bool,
}

/// For `sequence_flags`: forget everything that was interned before.
pub const INCREMENTAL_STATE_CLEARED: u32 = 1;
/// For `sequence_flags`: the packet uses interned strings.
pub const NEEDS_INCREMENTAL_STATE: u32 = 2;

#[derive(Clone, PartialEq, Message)]
pub struct TracePacketDefaults {
    #[prost(uint32, tag = "58")]
    pub timestamp_clock_id: u32,
}

#[derive(Clone, PartialEq, Message)]
pub struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    pub clocks: Vec<Clock>,
    /// A number for `clock_id`.
    #[prost(uint32, tag = "2")]
    pub primary_trace_clock: u32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Clock {
    #[prost(uint32, tag = "1")]
    pub clock_id: u32,
    #[prost(uint64, tag = "2")]
    pub timestamp: u64,
    #[prost(bool, tag = "3")]
    pub is_incremental: bool,
}

/// Perfetto's number for CLOCK_MONOTONIC.
pub const CLOCK_MONOTONIC: u32 = 3;
/// The first number for clocks that belong to one sequence.
pub const CLOCK_OF_SEQUENCE: u32 = 64;

#[derive(Clone, PartialEq, Message)]
pub struct TrackDescriptor {
    #[prost(uint64, tag = "1")]
    pub uuid: u64,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(message, optional, tag = "3")]
    pub process: Option<ProcessDescriptor>,
    #[prost(message, optional, tag = "4")]
    pub thread: Option<ThreadDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    pub counter: Option<CounterDescriptor>,
    #[prost(uint32, tag = "11")]
    pub child_ordering: u32,
    #[prost(int32, tag = "12")]
    pub sibling_order_rank: i32,
    #[prost(string, tag = "14")]
    pub description: String,
}

/// Marks a track as a process, which puts it into the table of processes.
#[derive(Clone, PartialEq, Message)]
pub struct ProcessDescriptor {
    #[prost(int32, tag = "1")]
    pub pid: i32,
    #[prost(string, tag = "6")]
    pub process_name: String,
}

/// Marks a track as a thread of a process.
#[derive(Clone, PartialEq, Message)]
pub struct ThreadDescriptor {
    #[prost(int32, tag = "1")]
    pub pid: i32,
    #[prost(int32, tag = "2")]
    pub tid: i32,
    #[prost(string, tag = "5")]
    pub thread_name: String,
}

/// Marks a track as a counter.
#[derive(Clone, PartialEq, Message)]
pub struct CounterDescriptor {}

/// For `child_ordering`: by `sibling_order_rank`.
pub const EXPLICIT_ORDER: u32 = 3;

#[derive(Clone, PartialEq, Message)]
pub struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
    #[prost(uint32, tag = "9")]
    pub r#type: u32,
    #[prost(uint64, tag = "10")]
    pub name_iid: u64,
    #[prost(uint64, tag = "11")]
    pub track_uuid: u64,
    #[prost(int64, optional, tag = "30")]
    pub counter_value: Option<i64>,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub flow_ids: Vec<u64>,
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub terminating_flow_ids: Vec<u64>,
    #[prost(uint64, optional, tag = "52")]
    pub correlation_id: Option<u64>,
}

/// A value of `type`.
pub const SLICE_BEGIN: u32 = 1;
pub const SLICE_END: u32 = 2;
pub const COUNTER: u32 = 4;

/// An argument of an event.
#[derive(Clone, PartialEq, Message)]
pub struct DebugAnnotation {
    #[prost(uint64, tag = "1")]
    pub name_iid: u64,
    #[prost(int64, optional, tag = "4")]
    pub int_value: Option<i64>,
    /// A number of [`InternedData::debug_annotation_string_values`].
    #[prost(uint64, optional, tag = "17")]
    pub string_value_iid: Option<u64>,
}

/// Strings that are written once, and then named by number.
#[derive(Clone, PartialEq, Message)]
pub struct InternedData {
    #[prost(message, repeated, tag = "2")]
    pub event_names: Vec<InternedName>,
    #[prost(message, repeated, tag = "3")]
    pub debug_annotation_names: Vec<InternedName>,
    /// Perfetto declares these as bytes; the encoding is the same.
    #[prost(message, repeated, tag = "29")]
    pub debug_annotation_string_values: Vec<InternedName>,
}

#[derive(Clone, PartialEq, Message)]
pub struct InternedName {
    #[prost(uint64, tag = "1")]
    pub iid: u64,
    #[prost(string, tag = "2")]
    pub name: String,
}
