// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes the tracks, and the events on them in time order, for `perfetto`.
//!
//! There is one group per device, with two counters and the lanes of each layer. There is one per
//! process, with its threads and the lanes of each. There is one of CPUs, if switches show what ran
//! there. The lanes of one layer or thread have the same name, so Perfetto shows them as one.

use prost::Message;
use strum::VariantArray;

use super::arguments;
use super::lanes;
use super::messages::{COUNTER, EXPLICIT_ORDER, SLICE_BEGIN, SLICE_END};
use super::messages::{CounterDescriptor, ProcessDescriptor, ThreadDescriptor};
use super::messages::{TrackDescriptor, TrackEvent};
use super::slices::{self, Calls, Layer, Slice};
use super::strings::Strings;
use crate::io::{Origin, Trace};
use crate::report::by_key;
use crate::report::groups::counts;
use crate::report::rows::Item;
use crate::report::thread_time::runs;
use crate::report::waited_for::WaitedFor;
use crate::report::waiting::{Wait, Waiting};
use crate::report::words::{Names, device_name, op_and_size};

/// The drawing of a trace.
#[derive(Default)]
pub struct Timeline {
    /// The tracks. A group comes before its members.
    pub tracks: Vec<TrackDescriptor>,
    /// The [`TrackEvent`]s in time order. Events of one track at the same time are in order too.
    pub points: Vec<(u64, Vec<u8>)>,
    pub strings: Strings,
}

impl Timeline {
    /// Draws all I/Os and requests, and these calls. `names` are the known names of devices.
    pub fn of(trace: &Trace, names: &Names, calls: &[Item]) -> Timeline {
        let mut timeline = Timeline::default();
        timeline.add_threads(trace, calls);
        timeline.add_cpus(trace);
        let calls = Calls::of(trace);
        let requests = trace.requests.iter().enumerate();
        for (dev, own) in by_key(requests.map(|(index, request)| (request.dev, index))) {
            timeline.add_device(&device_name(names, dev), &own, trace, &calls);
        }
        // A stable sort: at equal times, the end of a slice stays before the beginning of the next
        // on that lane.
        timeline.points.sort_by_key(|(time_ns, _)| *time_ns);
        timeline
    }

    fn add_threads(&mut self, trace: &Trace, calls: &[Item]) {
        let ios = trace.ios.iter().map(|io| Item::of_io(trace, io, &Names::new()));
        let ios: Vec<Item> = ios.collect();
        let all = on_threads(trace, &ios, calls);
        let by_thread = by_key(all.map(|one| (one.item.row.pid, one)));
        let processes = by_thread.into_iter().map(|(pid, own)| (trace.processes.of(pid), own));
        for (process, threads) in by_key(processes) {
            let pid_of = |own: &&Vec<OnThread>| own[0].item.row.pid == process;
            let first = threads.iter().find(pid_of).unwrap_or(&threads[0]);
            let (pid, process_name) = (process as i32, first[0].item.row.comm.clone());
            let name = process_name.clone();
            let process = Some(ProcessDescriptor { pid, process_name });
            self.group(TrackDescriptor { name, process, ..TrackDescriptor::default() });
            threads.into_iter().for_each(|own| self.add_thread(trace, pid, own));
        }
    }

    fn add_thread(&mut self, trace: &Trace, pid: i32, mut own: Vec<OnThread>) {
        own.sort_by_key(|one| one.item.during_ns());
        let name = own[0].item.row.comm.clone();
        let (tid, thread_name) = (own[0].item.row.pid as i32, name.clone());
        let thread = Some(ThreadDescriptor { pid, tid, thread_name });
        let group = TrackDescriptor { name: name.clone(), thread, ..TrackDescriptor::default() };
        let group = self.group(group);
        let times = own.iter().map(|one| one.item.during_ns()).collect();
        let lanes = self.lanes(&name, group, 0, times);
        for (OnThread { io, item, waits }, track) in own.into_iter().zip(lanes) {
            let call = item.row.call.unwrap_or_default();
            let mut event = self.named(&op_and_size(call, item.row.bytes.unwrap_or(0)));
            if let Some(io) = io {
                event.debug_annotations = arguments::of_io(&mut self.strings, io, &item.row);
                let own = trace.ios[io].requests.iter();
                let own = own.filter(|index| trace.requests[**index].origin == Origin::Io(io));
                event.flow_ids = own.map(|index| request_id(*index)).collect();
            }
            self.add_path(&mut event, trace.path(item.io.and_then(|io| io.file)));
            let waits = waits.iter().map(|wait| (wait.what.title(), wait.from_ns, wait.to_ns));
            self.slice(track, item.during_ns(), event, waits);
        }
    }

    /// Adds the threads on each CPU, where they are certain. Idle is left out, and so is the first
    /// thread of the trace.
    fn add_cpus(&mut self, trace: &Trace) {
        let seen = runs(trace.sched.events.iter());
        let seen = seen.filter(|run| run.task.pid != 0 && run.from_ns > 0);
        let by_cpu = by_key(seen.map(|run| (run.cpu, run)));
        if by_cpu.is_empty() {
            return;
        }
        let group =
            self.group(TrackDescriptor { name: "CPUs".into(), ..TrackDescriptor::default() });
        for (rank, (cpu, runs)) in (0..).zip(by_cpu) {
            let track = self.within(group, rank, &format!("CPU {cpu}"));
            for run in runs {
                // A name such as "fio 1234".
                let name = format!("{} {}", run.task.comm, run.task.pid);
                let event = self.named(name.trim_start());
                self.slice(track, (run.from_ns, run.to_ns), event, std::iter::empty());
            }
        }
    }

    fn add_device(&mut self, name: &str, own: &[usize], trace: &Trace, calls: &Calls) {
        let (name, description) = (format!("device {name}"), account(trace));
        let group = TrackDescriptor { name, description, ..TrackDescriptor::default() };
        let group = self.group(group);
        let requests = own.iter().map(|index| &trace.requests[*index]);
        let lives = requests.map(|request| request.life());
        self.counter("requests queued or in flight", group, 0, counts(lives));
        let slices = own.iter().flat_map(|index| slices::of_request(trace, calls, *index));
        let slices: Vec<Slice> = slices.collect();
        let of_layer = |layer| slices.iter().filter(move |slice| slice.layer == layer);
        let with_device = counts(of_layer(Layer::Device).map(Slice::when));
        self.counter("requests in flight", group, 1, with_device);
        for (rank, layer) in (2..).zip(Layer::VARIANTS) {
            let mut own: Vec<&Slice> = of_layer(*layer).collect();
            own.sort_by_key(|slice| slice.when());
            let times = own.iter().map(|slice| slice.when()).collect();
            let lanes = self.lanes(layer.into_str(), group, rank, times);
            for (slice, track) in own.into_iter().zip(lanes) {
                let event = self.request_event(trace, slice);
                self.slice(track, slice.when(), event, slice.waits.iter().copied());
            }
        }
    }

    fn request_event(&mut self, trace: &Trace, slice: &Slice) -> TrackEvent {
        let (request, id) = (&trace.requests[slice.request], request_id(slice.request));
        // Similar slices have the same name, so that Perfetto sums them.
        let mut name = op_and_size(request.op.kind.into_str(), request.bytes);
        let mut known = arguments::of_request(&mut self.strings, slice.request, request);
        if let Some(piece) = slice.piece {
            name.push_str(&format!(" {}/{}", piece + 1, request.pieces.len()));
            known.extend(arguments::of_piece(&mut self.strings, piece, request));
        }
        let mut event = TrackEvent {
            debug_annotations: known,
            correlation_id: Some(id),
            flow_ids: Vec::from_iter((slice.linked && !slice.last).then_some(id)),
            terminating_flow_ids: Vec::from_iter(slice.last.then_some(id)),
            ..self.named(&name)
        };
        self.add_path(&mut event, trace.path(request.file));
        event
    }

    fn add_path(&mut self, event: &mut TrackEvent, path: Option<&str>) {
        event.debug_annotations.extend(path.map(|path| self.strings.text("path", path)));
    }

    fn named(&mut self, name: &str) -> TrackEvent {
        TrackEvent { name_iid: self.strings.names.number(name), ..TrackEvent::default() }
    }

    /// Adds a track and returns its number; 0 is Perfetto's own.
    fn add(&mut self, track: TrackDescriptor) -> u64 {
        let uuid = self.tracks.len() as u64 + 1;
        self.tracks.push(TrackDescriptor { uuid, ..track });
        uuid
    }

    fn group(&mut self, track: TrackDescriptor) -> u64 {
        self.add(TrackDescriptor { child_ordering: EXPLICIT_ORDER, ..track })
    }

    fn within(&mut self, group: u64, rank: i32, name: &str) -> u64 {
        let (name, parent_uuid, sibling_order_rank) = (name.to_string(), Some(group), rank);
        let track = TrackDescriptor::default();
        self.add(TrackDescriptor { name, parent_uuid, sibling_order_rank, ..track })
    }

    /// Adds as many tracks as slices at these times need, and returns the track of each slice.
    fn lanes(&mut self, name: &str, group: u64, rank: i32, times: Vec<(u64, u64)>) -> Vec<u64> {
        let (lanes, first) = (lanes::assign(times), self.tracks.len() as u64 + 1);
        let count = lanes.iter().max().map_or(0, |highest| highest + 1);
        for _ in 0..count {
            self.within(group, rank, name);
        }
        lanes.into_iter().map(|lane| first + lane as u64).collect()
    }

    /// Adds a slice with everything inside it, in order.
    fn slice(
        &mut self,
        track_uuid: u64,
        (begin_ns, end_ns): (u64, u64),
        event: TrackEvent,
        within: impl Iterator<Item = (&'static str, u64, u64)>,
    ) {
        let end = TrackEvent { r#type: SLICE_END, track_uuid, ..TrackEvent::default() };
        self.point(begin_ns, TrackEvent { r#type: SLICE_BEGIN, track_uuid, ..event });
        for (name, from_ns, to_ns) in within.filter(|(_, from_ns, to_ns)| from_ns < to_ns) {
            let event = self.named(name);
            self.point(from_ns, TrackEvent { r#type: SLICE_BEGIN, track_uuid, ..event });
            self.point(to_ns, end.clone());
        }
        self.point(end_ns, end);
    }

    fn counter(&mut self, name: &str, group: u64, rank: i32, counts: Vec<(u64, i64)>) {
        let track_uuid = self.within(group, rank, name);
        if let Some(track) = self.tracks.last_mut() {
            track.counter = Some(CounterDescriptor {});
        }
        let event = TrackEvent { r#type: COUNTER, track_uuid, ..TrackEvent::default() };
        for (time_ns, count) in counts {
            self.point(time_ns, TrackEvent { counter_value: Some(count), ..event.clone() });
        }
    }

    fn point(&mut self, time_ns: u64, event: TrackEvent) {
        self.points.push((time_ns, event.encode_to_vec()));
    }
}

/// The number of a request for flows and correlations; 0 means none.
fn request_id(request: usize) -> u64 {
    request as u64 + 1
}

/// An I/O or another call on its thread's track.
struct OnThread<'a> {
    /// The index in [`Trace::ios`] of an I/O.
    io: Option<usize>,
    item: &'a Item<'a>,
    /// The waits, except unknown ones and those that its requests show.
    waits: Vec<Wait<'a>>,
}

/// All I/Os, and the calls that did more than run.
fn on_threads<'a>(
    trace: &'a Trace,
    ios: &'a [Item<'a>],
    calls: &'a [Item<'a>],
) -> impl Iterator<Item = OnThread<'a>> {
    let waiting = Waiting::new(trace);
    let ios = ios.iter().enumerate().map(|(index, io)| (Some(index), io));
    let all = ios.chain(calls.iter().map(|call| (None, call)));
    all.filter_map(move |(io, item)| {
        use WaitedFor::{OwnRequest, Running, Unknown};
        let mut waits = waiting.of(item);
        let waited = waits.iter().any(|wait| wait.what != Running);
        let is_left_out = |what| matches!(what, OwnRequest | Running | Unknown);
        waits.retain(|wait| {
            wait.stay.is_some_and(|stay| stay.woken.is_some()) || !is_left_out(wait.what)
        });
        (io.is_some() || waited).then_some(OnThread { io, item, waits })
    })
}

fn account(trace: &Trace) -> String {
    let account = &trace.account;
    let mut text = format!(
        "{} requests matched, {} at the edges of the trace, {} hit by lost events, {} unmatched; \
         {} of {} events lost.",
        account.matched,
        account.at_the_edges,
        account.hit_by_loss,
        account.unmatched_count,
        account.events_lost,
        account.events.saturating_add(account.events_lost),
    );
    for missing in &trace.missing {
        text.push_str(&format!(" No {}: {}.", missing.event, missing.consequence));
    }
    text
}
