// SPDX-License-Identifier: MIT OR Apache-2.0
//! The drivers' commands in flight: which request a command is for, and so when the hardware worked on it.
//!
//! MMC's start event says the sector. NVMe prepares a command, and then issues its request, in one go: the
//! command is that of the next issue by this thread on this CPU; its event is before the issue, so it is no mark
//! of its own. SCSI starts a command right after its request's issue. Commands that fit no request (status polls,
//! switches, error handling) are ignored.

use std::collections::{HashMap, HashSet};

use super::ambiguous::OpenRequests;
use super::open::{CommandKey, Open, Side, Slot};
use super::table::Table;
use crate::event::{Command, Dev, Driver, Event, EventKind, Extent, MMC_MAJOR, OpKind};
use crate::follow::sink::Sink;
use crate::io::Request;

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

#[derive(Debug, Default)]
pub(in crate::follow) struct Commands {
    running: HashMap<CommandKey, Slot>,
    /// By CPU: which thread prepared which command there last.
    prepared: HashMap<u32, (u32, CommandKey)>,
    /// By CPU: which thread issued which request there last.
    issued: HashMap<u32, (u32, Slot)>,
    cards: HashSet<Dev>,
}

impl Commands {
    /// After a loss.
    pub fn forget(&mut self) {
        *self = Commands { cards: std::mem::take(&mut self.cards), ..Commands::default() };
    }

    /// The request has completed.
    pub fn release(&mut self, slot: Slot, command: CommandKey) {
        if self.running.get(&command) == Some(&slot) {
            self.running.remove(&command);
        }
    }

    /// Nothing was issued after all.
    pub fn forget_issue(&mut self, cpu: u32) {
        self.prepared.remove(&cpu);
        self.issued.remove(&cpu);
    }

    /// The request was issued.
    pub fn note_issue(&mut self, slot: Slot, dev: Dev, event: &Event, table: &mut Table) {
        if dev.major == MMC_MAJOR {
            self.cards.insert(dev);
        }
        // Commands of disks that are not traced are seen too, without their issue: a command that this disk cannot
        // have is not for it.
        self.issued.remove(&event.cpu);
        let prepared = self.prepared.remove(&event.cpu);
        if takes_scsi(dev) {
            self.issued.insert(event.cpu, (event.pid, slot));
        }
        if let Some((_, command)) = prepared.filter(|(pid, _)| *pid == event.pid && takes_nvme(dev))
        {
            self.bind(slot, command, table);
        }
    }

    pub fn start(&mut self, event: &Event, open: &mut OpenRequests, sink: &mut Sink) {
        let EventKind::HardwareStart(command) = &event.what else { return };
        let key = (command.driver, command.key);
        let slot = match command.driver {
            Driver::Nvme => {
                self.prepared.insert(event.cpu, (event.pid, key));
                return;
            }
            Driver::Scsi => {
                let issued = self.issued.remove(&event.cpu);
                issued.filter(|(pid, _)| *pid == event.pid).map(|(_, slot)| slot)
            }
            Driver::Mmc => {
                open.forget_reused(event, command, sink);
                self.request_of_card(command, open)
            }
        };
        let Some(slot) = slot else { return };
        self.bind(slot, key, &mut open.table);
        let dispatch = open.table.all.get_mut(slot).and_then(|open| open.dispatch.as_mut());
        if let Some(piece) = dispatch {
            piece.hardware_start_ns.get_or_insert(event.time_ns);
        }
    }

    pub fn end(&mut self, event: &Event, command: &Command, table: &mut Table) {
        let key = (command.driver, command.key);
        let Some(slot) = self.running.remove(&key) else { return };
        let Some(open) = table.all.get_mut(slot).filter(|open| open.command == Some(key)) else {
            return;
        };
        // Without command queueing, a write command ends with the transfer; the card is busy for longer.
        let still_busy = command.driver == Driver::Mmc
            && open.request.op.kind == OpKind::Write
            && command.opcode.is_some_and(|opcode| opcode != 0);
        if let Some(piece) = open.dispatch.as_mut().filter(|_| !still_busy) {
            piece.hardware_done_ns = Some(event.time_ns);
        }
    }

    /// The only request in flight at a card that the command can be for. Of several, none can be reported.
    fn request_of_card(&self, command: &Command, all: &mut OpenRequests) -> Option<Slot> {
        let (sector, bytes) = (command.sector?, u64::from(command.bytes.filter(|b| *b > 0)?));
        let fits =
            |open: &Open| open.dispatch.is_some() && u64::from(open.dispatch_left) << 9 >= bytes;
        let with = |card: &Dev| all.table.at((Side::Front, (*card, sector)), fits);
        let found: Vec<Vec<Slot>> = self.cards.iter().map(with).collect();
        for alike in found.iter().filter(|slots| slots.len() > 1) {
            all.suspect_all(alike);
        }
        let [slot] = found.concat()[..] else { return None };
        let open = all.table.all.get(slot)?;
        let (Request { dev, op, priority, .. }, sectors) = (&open.request, command.bytes? >> 9);
        let extent = Extent { dev: *dev, sector, sectors, op: *op, priority: *priority };
        all.mark_ambiguous(&[slot], &extent);
        Some(slot)
    }

    fn bind(&mut self, slot: Slot, command: CommandKey, table: &mut Table) {
        let Some(open) = table.all.get_mut(slot) else { return };
        if let Some(before) = open.command.replace(command) {
            self.release(slot, before);
        }
        self.running.insert(command, slot);
    }
}
