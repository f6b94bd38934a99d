// SPDX-License-Identifier: MIT OR Apache-2.0
//! The driver and the device: issue, pieces, requeues, ends in part or with an error.

use steadyio_trace::event::{Command, Driver, EventKind};
use steadyio_trace::io::{Mark, Piece};

use super::{Places, Sim, Where};
use crate::events::extent;

impl Sim {
    fn pick(&mut self, place: Where) -> Option<usize> {
        let all: Vec<usize> =
            (0..self.live.len()).filter(|at| self.live[*at].place == place).collect();
        let nth = self.below(all.len().max(1) as u64) as usize;
        all.get(nth).copied()
    }

    /// Somebody runs the queue.
    pub(super) fn dispatch(&mut self) {
        let Some(at) = self.pick(Where::Scheduler) else { return };
        let (cpu, pid) = (self.cpu(), 50 + self.below(3) as u32);
        self.issue(at, cpu, pid);
    }

    /// All of it or a piece goes to the driver, which may be busy.
    pub(super) fn issue(&mut self, at: usize, cpu: u32, pid: u32) {
        let letters = self.requests[self.live[at].truth].letters;
        let (sector, left) = (self.live[at].sector, self.live[at].left);
        if self.one_in(8) {
            let place = self.extent_of(at);
            self.emit(cpu, pid, EventKind::Requeue(place));
            self.requests[self.live[at].truth].requeues += 1;
            self.live[at].mergeable = self.live[at].mergeable && !self.one_in(2);
            return;
        }
        let mut sectors = left;
        if left > 8 && self.one_in(3) && self.live[at].mergeable {
            sectors = 8;
        }
        let time_ns = self.emit(cpu, pid, EventKind::Issue(extent(letters, sector, sectors)));
        let (key, truth) = (self.live[at].key, self.live[at].truth);
        let has_command = self.shape.places != Places::Moving && self.one_in(2);
        let hardware_start_ns = has_command.then(|| {
            let command = Command {
                driver: Driver::Mmc,
                key,
                sector: Some(sector),
                bytes: Some(sectors * 512),
                opcode: Some(0),
            };
            self.emit(cpu, pid, EventKind::HardwareStart(command))
        });
        let truth = &mut self.requests[truth];
        if truth.marks.get(Mark::Issued).is_none() {
            truth.marks.set(Mark::Issued, time_ns);
            truth.sector = sector;
            truth.bytes = u64::from(left) * 512;
        }
        let piece = Piece {
            issued_ns: time_ns,
            ended_ns: 0,
            sector,
            bytes: 0,
            hardware_start_ns,
            hardware_done_ns: None,
        };
        let live = &mut self.live[at];
        (live.stay, live.place) = (Some((sectors, piece)), Where::Device);
        live.mergeable = false;
    }

    /// The device ends something, or a rest comes back.
    pub(super) fn step_device(&mut self) {
        if let Some(at) = self.pick(Where::Parted) {
            let (cpu, place) = (self.cpu(), self.extent_of(at));
            self.emit(cpu, 0, EventKind::Requeue(place));
            self.live[at].place = Where::Scheduler;
            if self.one_in(2) {
                self.insert(at, cpu, 60);
            }
            return;
        }
        let Some(at) = self.pick(Where::Device) else { return };
        let cpu = self.cpu();
        if self.one_in(8) {
            return self.give_back(at, cpu);
        }
        let (issued, _) = self.live[at].stay.unwrap();
        // Only requests that nothing follows are ended in part: those of sequences are whole.
        let whole = self.live[at].preflush || self.live[at].postflush;
        let sectors = if issued > 8 && !whole && self.one_in(4) { 8 } else { issued };
        self.finish_sectors(at, cpu, sectors);
    }

    fn give_back(&mut self, at: usize, cpu: u32) {
        let place = self.extent_of(at);
        let time_ns = self.emit(cpu, 0, EventKind::Requeue(place));
        let (_, piece) = self.live[at].stay.take().unwrap();
        let truth = &mut self.requests[self.live[at].truth];
        if piece.bytes == 0 {
            truth.requeues += 1;
            truth.pieces.push(Piece { ended_ns: time_ns, ..piece });
        } else {
            truth.pieces.push(piece);
        }
        self.live[at].place = Where::Scheduler;
    }

    fn finish_sectors(&mut self, at: usize, cpu: u32, sectors: u32) {
        let truth = self.live[at].truth;
        let (letters, sector) = (self.requests[truth].letters, self.live[at].sector);
        let started = self.live[at].stay.unwrap().1.hardware_start_ns.is_some();
        let key = self.live[at].key;
        if started && sectors == self.live[at].stay.unwrap().0 {
            let (driver, bytes) = (Driver::Mmc, Some(sectors * 512));
            let done = Command { driver, key, sector: None, bytes, opcode: Some(0) };
            let time_ns = self.emit(cpu, 0, EventKind::HardwareDone(done));
            self.live[at].stay.as_mut().unwrap().1.hardware_done_ns = Some(time_ns);
        }
        let error = if self.one_in(16) { -5 } else { 0 };
        let end = EventKind::Complete { extent: extent(letters, sector, sectors), error };
        let time_ns = self.emit(cpu, 0, end);
        let request = &mut self.requests[truth];
        request.marks.set(Mark::Completed, time_ns);
        request.error = if request.error == 0 { error } else { request.error };
        let live = &mut self.live[at];
        live.sector += u64::from(sectors);
        live.left -= sectors;
        let (left, piece) = live.stay.as_mut().unwrap();
        *left -= sectors;
        piece.bytes += u64::from(sectors) * 512;
        piece.ended_ns = time_ns;
        if live.left == 0 {
            request.pieces.push(*piece);
            self.end_data(at, cpu);
        } else if *left == 0 {
            request.pieces.push(*piece);
            (live.stay, live.place) = (None, Where::Parted);
        }
    }
}
