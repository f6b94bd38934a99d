// SPDX-License-Identifier: MIT OR Apache-2.0
//! The few of Perfetto's messages that are written, with the field numbers of its `perfetto_trace.proto`.
//!
//! Declared here, so that a build needs neither `protoc` nor all of Perfetto's messages. What a field means
//! is said there; here only how it is used.

use prost::{Enumeration, Message, Oneof};

/// A whole file, or any part of it between two packets.
#[derive(Clone, PartialEq, Message)]
pub struct Trace {
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<TracePacket>,
}

/// One entry of the file.
#[derive(Clone, PartialEq, Message)]
pub struct TracePacket {
    /// In the clock of [`TracePacketDefaults`].
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    #[prost(oneof = "Data", tags = "6, 11, 60")]
    pub data: Option<Data>,
    #[prost(uint32, tag = "10")]
    pub trusted_packet_sequence_id: u32,
    #[prost(message, optional, tag = "12")]
    pub interned_data: Option<InternedData>,
    #[prost(uint32, tag = "13")]
    pub sequence_flags: u32,
    #[prost(message, optional, tag = "59")]
    pub trace_packet_defaults: Option<TracePacketDefaults>,
    #[prost(bool, tag = "87")]
    pub first_packet_on_sequence: bool,
}

/// What a packet is about.
#[derive(Clone, PartialEq, Oneof)]
pub enum Data {
    #[prost(message, tag = "6")]
    ClockSnapshot(ClockSnapshot),
    #[prost(message, tag = "11")]
    TrackEvent(TrackEvent),
    #[prost(message, tag = "60")]
    TrackDescriptor(TrackDescriptor),
}

/// In `sequence_flags`: what was interned before is forgotten.
pub const INCREMENTAL_STATE_CLEARED: u32 = 1;
/// In `sequence_flags`: the packet uses what was interned.
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
    /// A `clock_id`.
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
/// The first number for clocks that are of one sequence only.
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
    #[prost(enumeration = "ChildOrdering", tag = "11")]
    pub child_ordering: i32,
    #[prost(int32, tag = "12")]
    pub sibling_order_rank: i32,
    #[prost(string, tag = "14")]
    pub description: String,
}

/// That a track is a process, which so gets into the table of processes.
#[derive(Clone, PartialEq, Message)]
pub struct ProcessDescriptor {
    #[prost(int32, tag = "1")]
    pub pid: i32,
    #[prost(string, tag = "6")]
    pub process_name: String,
}

/// That a track is a thread of a process.
#[derive(Clone, PartialEq, Message)]
pub struct ThreadDescriptor {
    #[prost(int32, tag = "1")]
    pub pid: i32,
    #[prost(int32, tag = "2")]
    pub tid: i32,
    #[prost(string, tag = "5")]
    pub thread_name: String,
}

/// That a track is a counter.
#[derive(Clone, PartialEq, Message)]
pub struct CounterDescriptor {}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub enum ChildOrdering {
    Unknown = 0,
    Lexicographic = 1,
    Chronological = 2,
    Explicit = 3,
}

#[derive(Clone, PartialEq, Message)]
pub struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
    #[prost(enumeration = "EventType", tag = "9")]
    pub r#type: i32,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub enum EventType {
    Unspecified = 0,
    SliceBegin = 1,
    SliceEnd = 2,
    Instant = 3,
    Counter = 4,
}

/// An argument of an event.
#[derive(Clone, PartialEq, Message)]
pub struct DebugAnnotation {
    #[prost(uint64, tag = "1")]
    pub name_iid: u64,
    #[prost(oneof = "Value", tags = "3, 4, 17")]
    pub value: Option<Value>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum Value {
    #[prost(uint64, tag = "3")]
    Unsigned(u64),
    #[prost(int64, tag = "4")]
    Signed(i64),
    /// Of [`InternedData::debug_annotation_string_values`].
    #[prost(uint64, tag = "17")]
    StringIid(u64),
}

/// Strings that are written once, and then known by number.
#[derive(Clone, PartialEq, Message)]
pub struct InternedData {
    #[prost(message, repeated, tag = "2")]
    pub event_names: Vec<InternedName>,
    #[prost(message, repeated, tag = "3")]
    pub debug_annotation_names: Vec<InternedName>,
    /// Of bytes in Perfetto's declaration: on the wire the same.
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
