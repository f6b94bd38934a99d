// SPDX-License-Identifier: MIT OR Apache-2.0
//! Matches the drivers' commands with requests, and so finds when the hardware worked on a request.
//! `requests` calls it.
//!
//! MMC's start event has the sector. NVMe prepares a command, and then issues its request without a
//! pause. The command belongs to the next issue by this thread on this CPU. Its event precedes the
//! issue, so it is not a mark. SCSI starts a command right after its request's issue. Commands
//! without a request (status polls, switches, error handling) are ignored.

use std::collections::{HashMap, HashSet};

use super::ambiguous::OpenRequests;
use super::open::{CommandKey, Open, Side, Slot};
use super::table::Table;
use crate::event::{Command, Dev, Driver, Event, EventKind, Extent, MMC_MAJOR, OpKind};
use crate::follow::sink::Sink;
use crate::io::Request;

/// The major number of passthrough requests without a disk.
const NO_MAJOR: u32 = 0;

/// Whether it can be a disk of the NVMe driver, whose device numbers are the block layer's.
fn takes_nvme(dev: Dev) -> bool {
    matches!(dev.major, NO_MAJOR | 259)
}

/// Whether it can be a SCSI disk or a SCSI CD drive.
fn takes_scsi(dev: Dev) -> bool {
    matches!(dev.major, NO_MAJOR | 8 | 11 | 65..=71 | 128..=135)
}

#[derive(Debug, Default)]
pub(in crate::follow) struct Commands {
    running: HashMap<CommandKey, Slot>,
    /// SCSI commands that were in flight twice at a time, so their ends cannot be told apart.
    alike: HashSet<CommandKey>,
    /// For each CPU, the thread that prepared the last command, and the command.
    prepared: HashMap<u32, (u32, CommandKey)>,
    /// For each CPU, the thread that issued the last request, and the request.
    issued: HashMap<u32, (u32, Slot)>,
    cards: HashSet<Dev>,
}

impl Commands {
    /// Forgets all commands after a loss.
    pub fn forget(&mut self) {
        *self = Commands { cards: std::mem::take(&mut self.cards), ..Commands::default() };
    }

    /// Releases the command of a completed request.
    pub fn release(&mut self, slot: Slot, command: CommandKey) {
        if self.running.get(&command) == Some(&slot) {
            self.running.remove(&command);
        }
    }

    /// Forgets the last issue on a CPU. Returns the command that was prepared for the next one.
    pub fn forget_issue(&mut self, cpu: u32) -> Option<(u32, CommandKey)> {
        self.issued.remove(&cpu);
        self.prepared.remove(&cpu)
    }

    /// Records the issue of a request.
    pub fn note_issue(&mut self, slot: Slot, dev: Dev, event: &Event, table: &mut Table) {
        if dev.major == MMC_MAJOR {
            self.cards.insert(dev);
        }
        // Commands of disks that are not traced also have events, but no issue. Ignore a command
        // that this disk cannot have.
        let prepared = self.forget_issue(event.cpu);
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
                let slot = issued.filter(|(pid, _)| *pid == event.pid).map(|(_, slot)| slot);
                slot.filter(|slot| self.is_unlike(key, *slot, &mut open.table))
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
        let open = table.all.get_mut(slot).filter(|open| open.command == Some(key));
        let Some(open) = open else { return };
        // Without command queueing, a write command ends with the transfer, but the card stays
        // busy.
        let still_busy = command.driver == Driver::Mmc
            && open.request.op.kind == OpKind::Write
            && command.opcode.is_some_and(|opcode| opcode != 0);
        if let Some(piece) = open.dispatch.as_mut().filter(|_| !still_busy) {
            piece.hardware_done_ns = Some(event.time_ns);
        }
    }

    /// Whether no other request in flight has the same command. If one has, neither gets it.
    fn is_unlike(&mut self, key: CommandKey, slot: Slot, table: &mut Table) -> bool {
        let other = self.running.get(&key).filter(|other| **other != slot);
        if let Some(open) = other.and_then(|other| table.all.get_mut(*other)) {
            open.command = None;
            if let Some(piece) = &mut open.dispatch {
                piece.hardware_start_ns = None;
            }
            self.running.remove(&key);
            self.alike.insert(key);
        }
        !self.alike.contains(&key)
    }

    /// The only request in flight at a card to which the command can belong. Among several, none
    /// can be reported.
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
