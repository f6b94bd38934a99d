// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a Perfetto file back, by its rules: tracks, slices in slices, counters, flows.

use std::collections::BTreeMap;

use prost::Message;
use steadyio_trace::event::Dev;
use steadyio_trace::io::Trace;
use steadyio_trace::perfetto::messages::{
    self, COUNTER, InternedName, SLICE_BEGIN, SLICE_END, TrackEvent,
};
use steadyio_trace::perfetto::write;
use steadyio_trace::report::rows::Item;

#[derive(Debug, Default)]
pub struct File {
    pub tracks: BTreeMap<u64, Track>,
    pub slices: Vec<Slice>,
}

#[derive(Debug)]
pub struct Track {
    pub name: String,
    pub group: Option<String>,
    /// Of a thread's track: process and thread.
    pub thread: Option<(i32, i32)>,
    pub counts: Vec<(u64, i64)>,
    last_ns: u64,
    open: Vec<usize>,
}

#[derive(Debug, Clone)]
pub struct Slice {
    pub name: String,
    pub track: u64,
    pub depth: usize,
    pub begin_ns: u64,
    pub end_ns: Option<u64>,
    pub arguments: BTreeMap<String, String>,
    pub flows: Vec<u64>,
    pub last_of: Vec<u64>,
}

#[derive(Default)]
struct Interned {
    names: BTreeMap<u64, String>,
    argument_names: BTreeMap<u64, String>,
    values: BTreeMap<u64, String>,
}

impl File {
    /// Writes the trace and reads it; panics where the file breaks a rule.
    pub fn of(trace: &Trace) -> File {
        File::named(trace, &BTreeMap::new())
    }

    /// The same, where devices have names.
    pub fn named(trace: &Trace, names: &BTreeMap<Dev, String>) -> File {
        let mut bytes = Vec::new();
        let calls: Vec<Item> = trace.calls_without_request.iter().map(Item::of_call).collect();
        write(trace, names, &calls, &mut bytes).unwrap();
        let read = messages::Trace::decode(bytes.as_slice()).unwrap();
        let mut file = File::default();
        let mut interned = Interned::default();
        let mut time_ns = 0;
        for packet in read.packet {
            if let Some(new) = packet.interned_data {
                learn(&mut interned.names, new.event_names);
                learn(&mut interned.argument_names, new.debug_annotation_names);
                learn(&mut interned.values, new.debug_annotation_string_values);
            }
            time_ns += packet.timestamp.unwrap_or(0);
            if let Some(clocks) = packet.clock_snapshot {
                time_ns = clocks.clocks[0].timestamp;
            } else if let Some(track) = packet.track_descriptor {
                file.add_track(track);
            } else {
                let event = packet.track_event.expect("a packet without data");
                file.add_event(time_ns, &TrackEvent::decode(&*event).unwrap(), &interned);
            }
        }
        assert!(file.slices.iter().all(|slice| slice.end_ns.is_some()), "a slice has no end");
        file
    }

    pub fn on(&self, track_name: &str) -> Vec<&Slice> {
        let on = |slice: &&Slice| slice.depth == 0 && self.tracks[&slice.track].name == track_name;
        self.slices.iter().filter(on).collect()
    }

    fn add_track(&mut self, track: messages::TrackDescriptor) {
        let parent = |uuid| self.tracks.get(&uuid).expect("a group is described first");
        let parent = track.parent_uuid.map(parent);
        let group = parent.map(|parent| parent.name.clone());
        // The UI adds the number, too.
        let name = match parent.and_then(|parent| parent.thread) {
            Some((_, thread)) => format!("{} {thread}", track.name),
            None => track.name,
        };
        let thread = track.thread.map(|thread| (thread.pid, thread.tid));
        let new = Track { name, group, thread, counts: vec![], last_ns: 0, open: vec![] };
        assert!(self.tracks.insert(track.uuid, new).is_none(), "described twice");
    }

    fn add_event(&mut self, time_ns: u64, event: &TrackEvent, interned: &Interned) {
        let track = self.tracks.get_mut(&event.track_uuid).expect("an event of no track");
        assert!(track.last_ns <= time_ns, "time runs backwards");
        track.last_ns = time_ns;
        match event.r#type {
            SLICE_BEGIN => {
                let number = self.slices.len();
                self.slices.push(begin(time_ns, track.open.len(), event, interned));
                track.open.push(number);
            }
            SLICE_END => {
                let open = track.open.pop().expect("an end without a begin");
                self.slices[open].end_ns = Some(time_ns);
            }
            COUNTER => track.counts.push((time_ns, event.counter_value.unwrap())),
            other => panic!("type {other} is not written"),
        }
    }
}

fn begin(time_ns: u64, depth: usize, event: &TrackEvent, interned: &Interned) -> Slice {
    let arguments = event.debug_annotations.iter().map(|annotation| {
        let value = match annotation.int_value {
            Some(number) => number.to_string(),
            None => interned.values[&annotation.string_value_iid.unwrap()].clone(),
        };
        (interned.argument_names[&annotation.name_iid].clone(), value)
    });
    Slice {
        name: interned.names[&event.name_iid].clone(),
        track: event.track_uuid,
        depth,
        begin_ns: time_ns,
        end_ns: None,
        arguments: arguments.collect(),
        flows: event.flow_ids.clone(),
        last_of: event.terminating_flow_ids.clone(),
    }
}

fn learn(known: &mut BTreeMap<u64, String>, new: Vec<InternedName>) {
    for InternedName { iid, name } in new {
        assert!(iid > 0 && known.insert(iid, name).is_none(), "interned twice");
    }
}
