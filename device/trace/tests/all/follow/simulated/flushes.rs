// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flush machinery of one hardware queue, as in block/blk-flush.c.

use steadyio_trace::event::EventKind;
use steadyio_trace::io::{Mark, Marks};

use super::{Sim, Truth, Where};
use crate::events::extent;

/// Where nothing else is.
const MAPPED_SECTOR: u64 = 1 << 40;

/// A waiter for a flush: a bio without data, data that it precedes, data that it follows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Waiter {
    Bio { bio: (u64, u32, Option<usize>), got_ns: u64, sector: u64 },
    Before { request: usize },
    After { request: usize, end: u64 },
}

#[derive(Clone, Debug, Default)]
pub(super) struct Machine {
    pending: Vec<Waiter>,
    running: Option<(Marks, Vec<Waiter>)>,
    data_in_flight: u32,
}

impl Machine {
    pub(super) fn is_idle(&self) -> bool {
        self.pending.is_empty() && self.running.is_none() && self.data_in_flight == 0
    }
}

impl Sim {
    pub(super) fn submit_flush(&mut self, cpu: u32, pid: u32, call: Option<usize>) {
        // Of a partition or a disk, or of what device mapper has there.
        let sector = if self.one_in(3) { MAPPED_SECTOR } else { 0 };
        let nothing = extent("FWS", sector, 0);
        let queued_ns = self.emit(cpu, pid, EventKind::BioQueue(nothing));
        let got_ns = self.emit(cpu, pid, EventKind::GetRequest(nothing));
        if let Some(call) = call {
            self.calls[call].open += 1;
        }
        let bio = (queued_ns, pid, call);
        self.flushes.pending.push(Waiter::Bio { bio, got_ns, sector });
    }

    /// A write with flushes around it, on a device without FUA.
    pub(super) fn submit_sequence(&mut self, cpu: u32, pid: u32, call: Option<usize>) {
        let Some((sector, sectors)) = self.room() else { return };
        let preflush = self.one_in(2);
        let postflush = !preflush || self.one_in(2);
        let asked = match (preflush, postflush) {
            (true, true) => "FWFS",
            (true, false) => "FWS",
            _ => "WFS",
        };
        let queued_ns = self.emit(cpu, pid, EventKind::BioQueue(extent(asked, sector, sectors)));
        let bio = (queued_ns, pid, call);
        let request = self.get_request(cpu, "WS", extent(asked, sector, sectors), bio, false);
        let live = self.live.last_mut().unwrap();
        (live.preflush, live.postflush, live.mergeable) = (preflush, postflush, false);
        if preflush {
            live.place = Where::Flush;
            self.flushes.pending.push(Waiter::Before { request });
        } else {
            live.place = Where::Scheduler;
            self.flushes.data_in_flight += 1;
        }
    }

    /// A flush begins if none runs and no data of a sequence does; a running one ends.
    pub(super) fn step_flush(&mut self) {
        let cpu = self.cpu();
        if self.flushes.running.is_some() {
            return self.end_flush(cpu);
        }
        if self.flushes.pending.is_empty() || self.flushes.data_in_flight > 0 {
            return;
        }
        let served = std::mem::take(&mut self.flushes.pending);
        let mut marks = Marks::default();
        marks.set(Mark::Issued, self.emit(cpu, 99, EventKind::Issue(extent("FF", 0, 0))));
        self.flushes.running = Some((marks, served));
    }

    fn end_flush(&mut self, cpu: u32) {
        let (mut marks, served) = self.flushes.running.take().unwrap();
        let end = EventKind::Complete { extent: extent("FF", u64::MAX, 0), error: 0 };
        marks.set(Mark::Completed, self.emit(cpu, 0, end));
        let flush = self.requests.len();
        let mut bios = Vec::new();
        self.requests.push(Truth {
            letters: "FF",
            sector: 0,
            bytes: 0,
            marks,
            bios: Vec::new(),
            cut: false,
            pieces: Vec::new(),
            requeues: 0,
            error: 0,
        });
        for waiter in served {
            match waiter {
                Waiter::Bio { bio, got_ns, sector } => {
                    bios.push((bio, got_ns));
                    self.emit_end(cpu, sector);
                }
                Waiter::Before { request } => {
                    bios.push(self.first_bio(request));
                    self.flushes.data_in_flight += 1;
                    let at = self.live.iter().position(|live| live.truth == request).unwrap();
                    self.live[at].place = Where::Scheduler;
                }
                Waiter::After { request, end } => {
                    bios.push(self.first_bio(request));
                    let begin = self.requests[request].sector;
                    let shown = if self.one_in(2) { begin } else { end };
                    self.emit_end(cpu, shown);
                    self.end_for_calls(request);
                }
            }
        }
        bios.sort_unstable();
        let (first, got_ns) = bios[0];
        let truth = &mut self.requests[flush];
        truth.marks.set(Mark::Queued, first.0);
        truth.marks.set(Mark::GotRequest, got_ns);
        for (bio, _) in bios {
            self.requests[flush].bios.push(bio);
            if let Some(call) = bio.2 {
                // Data counts itself; a bio without data was counted when it was queued.
                let first = self.calls[call].requests.entry(flush).or_insert(bio.0);
                *first = bio.0.min(*first);
            }
        }
        self.release_bios(flush);
    }

    fn release_bios(&mut self, flush: usize) {
        let served = self.requests[flush].bios.clone();
        for (queued_ns, _, call) in served {
            let data = self.requests.iter().take(flush).any(|request| {
                request.letters == "WS" && request.bios.iter().any(|bio| bio.0 == queued_ns)
            });
            if let (Some(call), false) = (call, data) {
                self.calls[call].open -= 1;
            }
        }
    }

    fn first_bio(&self, request: usize) -> ((u64, u32, Option<usize>), u64) {
        let truth = &self.requests[request];
        (truth.bios[0], truth.marks.get(Mark::GotRequest).unwrap())
    }

    fn emit_end(&mut self, cpu: u32, sector: u64) {
        self.emit(cpu, 0, EventKind::Complete { extent: extent("WS", sector, 0), error: 0 });
    }

    /// All data of a request has ended.
    pub(super) fn end_data(&mut self, at: usize, cpu: u32) {
        let (truth, preflush, postflush) =
            (self.live[at].truth, self.live[at].preflush, self.live[at].postflush);
        let (begin, end) = (self.requests[truth].sector, self.live[at].sector);
        if !preflush && !postflush {
            return self.end(at);
        }
        self.flushes.data_in_flight -= 1;
        let failed = self.requests[truth].error != 0;
        if postflush && !failed {
            self.live.remove(at);
            self.flushes.pending.push(Waiter::After { request: truth, end });
            return;
        }
        let shown = if self.one_in(2) { begin } else { end };
        let error = self.requests[truth].error;
        self.emit(cpu, 0, EventKind::Complete { extent: extent("WS", shown, 0), error });
        self.end(at);
    }
}
