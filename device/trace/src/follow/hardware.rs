// SPDX-License-Identifier: MIT OR Apache-2.0
//! The drivers' commands: which request a command is for, and so when the hardware worked on it.
//!
//! MMC's start event says the sector. NVMe prepares a command, and then issues its request, in one go: the
//! command is that of the next issue by this thread on this CPU; its event is before the issue, so it is no mark
//! of its own. SCSI starts a command right after its request's issue. Commands that fit no request (status polls,
//! switches, error handling) are ignored.

use std::collections::HashMap;

use super::super::event::{Command, Dev, Driver, Event, Extent, OpKind};
use super::Follower;
use super::open::{Open, RequestNumber, RequestState};

/// The major number of MMC cards.
pub(super) const MMC_MAJOR: u32 = 179;

/// Of passthrough requests without a disk.
const NO_MAJOR: u32 = 0;

/// Whether it can be a disk of the NVMe driver's, whose numbers are the block layer's.
fn takes_nvme(dev: Dev) -> bool {
    matches!(dev.major, NO_MAJOR | 259)
}

/// Whether it can be a SCSI disk, or a SCSI drive of CDs.
fn takes_scsi(dev: Dev) -> bool {
    matches!(dev.major, NO_MAJOR | 8 | 11 | 65..=71 | 128..=135)
}

/// A command in flight.
pub(super) type CommandKey = (Driver, u64);

/// All commands in flight.
#[derive(Debug, Default)]
pub(super) struct Hardware {
    running: HashMap<CommandKey, RequestNumber>,
    /// By CPU: which thread prepared which command there last.
    prepared: HashMap<u32, (u32, CommandKey)>,
    /// By CPU: which thread issued which request there last.
    issued: HashMap<u32, (u32, RequestNumber)>,
    cards: Vec<Dev>,
}

impl Hardware {
    /// After a loss.
    pub fn forget(&mut self) {
        *self = Hardware { cards: std::mem::take(&mut self.cards), ..Hardware::default() };
    }

    /// The request has completed.
    pub fn release(&mut self, slot: RequestNumber, command: CommandKey) {
        if self.running.get(&command) == Some(&slot) {
            self.running.remove(&command);
        }
    }

    /// Nothing was issued after all.
    pub fn requeued(&mut self, cpu: u32) {
        self.prepared.remove(&cpu);
        self.issued.remove(&cpu);
    }
}

impl Follower {
    /// The request was issued.
    pub(super) fn note_issue(&mut self, slot: RequestNumber, dev: Dev, event: &Event) {
        if dev.major == MMC_MAJOR && !self.hardware.cards.contains(&dev) {
            self.hardware.cards.push(dev);
        }
        // Commands of disks that are not traced are seen too, without their issue: a command that this disk cannot
        // have is not for it.
        self.hardware.issued.remove(&event.cpu);
        let prepared = self.hardware.prepared.remove(&event.cpu);
        if takes_scsi(dev) {
            self.hardware.issued.insert(event.cpu, (event.pid, slot));
        }
        if let Some((_, command)) = prepared.filter(|(pid, _)| *pid == event.pid && takes_nvme(dev))
        {
            self.bind(slot, command);
        }
    }

    pub(super) fn start_hardware(&mut self, event: &Event, command: &Command) {
        let key = (command.driver, command.key);
        let slot = match command.driver {
            Driver::Nvme => {
                self.hardware.prepared.insert(event.cpu, (event.pid, key));
                return;
            }
            Driver::Scsi => {
                let issued = self.hardware.issued.remove(&event.cpu);
                issued.filter(|(pid, _)| *pid == event.pid).map(|(_, slot)| slot)
            }
            Driver::Mmc => {
                self.forget_reused(event, command);
                self.request_of_card(command)
            }
        };
        let Some(slot) = slot else { return };
        self.bind(slot, key);
        if let Some(stay) = self.table.get_mut(slot).and_then(|open| open.stay.as_mut()) {
            stay.piece.hardware_start_ns.get_or_insert(event.time_ns);
        }
    }

    pub(super) fn end_hardware(&mut self, event: &Event, command: &Command) {
        let key = (command.driver, command.key);
        let Some(slot) = self.hardware.running.remove(&key) else { return };
        let Some(open) = self.table.get_mut(slot).filter(|open| open.command == Some(key)) else {
            return;
        };
        // Without command queueing, a write command ends with the transfer; the card is busy for longer.
        let still_busy = command.driver == Driver::Mmc
            && open.op.kind == OpKind::Write
            && command.opcode.is_some_and(|opcode| opcode != 0);
        if let Some(stay) = open.stay.as_mut().filter(|_| !still_busy) {
            stay.piece.hardware_done_ns = Some(event.time_ns);
        }
    }

    /// The only request in flight at a card that the command can be for. Of several, none can be reported.
    fn request_of_card(&mut self, command: &Command) -> Option<RequestNumber> {
        let (sector, bytes) = (command.sector?, u64::from(command.bytes.filter(|b| *b > 0)?));
        let fits = |open: &Open| {
            let left = open.stay.map_or(0, |stay| u64::from(stay.left) << 9);
            open.stage == RequestState::Issued && left >= bytes
        };
        let with = |card: &Dev| self.table.beginning((*card, sector), fits);
        let found: Vec<Vec<RequestNumber>> = self.hardware.cards.iter().map(with).collect();
        for alike in found.iter().filter(|slots| slots.len() > 1) {
            self.suspect_all(alike);
        }
        let [slot] = found.concat()[..] else { return None };
        let open = self.table.get(slot)?;
        let sectors = command.bytes? >> 9;
        let extent =
            Extent { dev: open.dev, sector, sectors, op: open.op, priority: open.priority };
        self.doubt_blurred(&[slot], &extent);
        Some(slot)
    }

    fn bind(&mut self, slot: RequestNumber, command: CommandKey) {
        let Some(open) = self.table.get_mut(slot) else { return };
        if let Some(before) = open.command.replace(command) {
            self.hardware.release(slot, before);
        }
        self.hardware.running.insert(command, slot);
    }
}
