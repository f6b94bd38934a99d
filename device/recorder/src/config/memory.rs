// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes the memory of rings and blocks, and checks it against the limit of locked memory.
//! `config` and `capi` call it.

use super::channel::ChannelConfig;
use super::defaults;
use super::limits::{BLOCK_BYTES, ConfigError, KIB, RING_RECORDS_MIN, bytes_in_memory, wrong};
use super::values::RecorderConfig;
use crate::ring::HEADER_BYTES;
use crate::sizing::buffers_bytes;
use steadyio_core::memory::{available_bytes, lockable_bytes, locked_bytes, may_lock};

impl RecorderConfig {
    /// The smallest ring that all channels can share.
    pub(super) fn shared_ring_min(&self) -> u64 {
        let comes = self.channels.iter().map(|channel| channel.comes_in_polls(self.poll()));
        let slot = self.channels.iter().map(ChannelConfig::slot_bytes).max().unwrap_or(0);
        comes.fold(0, u64::saturating_add).max(RING_RECORDS_MIN.saturating_mul(slot))
    }

    /// The size of a shared ring: `wanted`, or less if only less may be locked and that suffices.
    pub fn fitting_ring_bytes(&self, wanted: u64) -> u64 {
        let fits = wanted.min(defaults::whole_blocks_within(self.room_for_rings()));
        fits.max(defaults::whole_blocks(self.shared_ring_min()))
    }

    /// Checks that this much memory for blocks may be locked, and the rings too.
    pub(super) fn check_memory(&self, blocks_bytes: u64) -> Result<(), ConfigError> {
        let rings = self.channels.len().max(1) as u64;
        // A ring may touch one page more than its size.
        let pages = rings * BLOCK_BYTES;
        let needed = [blocks_bytes, self.rings_bytes(), pages, self.ram_bytes()];
        let needed = needed.into_iter().fold(0, u64::saturating_add);
        let available = available_bytes().unwrap_or(u64::MAX);
        if self.ram_bytes() > available {
            let reason = format!("only {available} bytes of memory are available");
            return Err(wrong("writer.ram.bytes", self.ram_bytes(), reason));
        }
        if !self.lock_memory || may_lock(needed) {
            return Ok(());
        }
        let reason = format!(
            "only {} may be locked: raise the limit ('ulimit -l {}' as root, or LimitMEMLOCK= in a \
             systemd unit), choose a smaller memory, ring, unit or longest record, or do without \
             locked memory and accept page faults",
            self.lockable_bytes(),
            needed.saturating_add(locked_bytes()).div_ceil(KIB)
        );
        Err(wrong("memory to lock", needed, reason))
    }

    /// The number of bytes that may still be locked; u64::MAX without a limit.
    pub fn lockable_bytes(&self) -> u64 {
        self.lock_memory.then(lockable_bytes).flatten().unwrap_or(u64::MAX)
    }

    /// The number of bytes that may be locked for rings. If later channels get their own rings,
    /// this reserves half of the memory that the blocks leave.
    pub fn room_for_rings(&self) -> u64 {
        let lockable = self.lockable_bytes();
        let layout = self.definitions().ok().and_then(|known| self.largest_layout(&known).ok());
        let unit_bytes = bytes_in_memory(self.unit_bytes);
        let block_bytes = layout.map_or(unit_bytes, |layout| layout.block_buffer_bytes());
        let pages = self.channels.len().max(1) as u64 * BLOCK_BYTES;
        let others = buffers_bytes(block_bytes).saturating_add(pages);
        let all = lockable.saturating_sub(others.saturating_add(self.ram_bytes()));
        let late = self.shared_ring_bytes.is_none() && self.late.channels > 0;
        if late { all / 2 } else { all }
    }

    /// The size of the memory that holds records until an incident.
    fn ram_bytes(&self) -> u64 {
        self.writer.ram.map_or(0, |ram| ram.bytes.saturating_add(BLOCK_BYTES))
    }

    /// Checks that this memory has room for any two records.
    pub(super) fn check_ram(&self) -> Result<(), ConfigError> {
        let Some(ram) = self.writer.ram else { return Ok(()) };
        // The memory adds less than another header to each record.
        let slot = self.longest_record() + 2 * HEADER_BYTES as u64;
        let least = RING_RECORDS_MIN * slot;
        if ram.bytes >= least {
            return Ok(());
        }
        let reason = format!("must be at least {least}, for two of the longest records");
        Err(wrong("writer.ram.bytes", ram.bytes, reason))
    }

    /// The size of all rings.
    pub fn rings_bytes(&self) -> u64 {
        let own = self.channels.iter().map(|channel| channel.ring_bytes).sum();
        self.shared_ring_bytes.unwrap_or(own)
    }
}
