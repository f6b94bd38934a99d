// SPDX-License-Identifier: MIT OR Apache-2.0
//! The time of one command, by its kind and size. `checks` compares the longest one of a profile
//! with it.

use super::spec::{Cost, Device};
use crate::Work;

/// The kind of a command, as far as its time depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    Read,
    Write,
    /// A write that bypasses the cache, with FUA.
    DurableWrite,
    Discard,
}

impl Device {
    /// The longest time of one command, without the stalls that [`Device::stalls_ns`] adds. It
    /// starts anywhere, in a slow episode, with all its data on one unit of the flash.
    pub fn command(&self, op: Op, kib: u64) -> Work {
        let slow = |slow_ns| if self.slow.length_us > 0 { slow_ns } else { 0 };
        let bus_ns = kib * self.card.bus_per_kib_ns;
        let flash_ns = |cost: &Cost| {
            let once_ns = cost.base_ns + cost.jitter_ns + cost.jump_ns + slow(cost.slow_ns);
            once_ns + kib * cost.per_kib_ns + bus_ns
        };
        match op {
            Op::Read => Work { ns: flash_ns(&self.read), ..Work::default() },
            Op::Write if kib <= self.cache.kib => {
                let ns = self.cache.base_ns + kib * self.cache.per_kib_ns;
                let ns = ns + bus_ns + self.card.status_ns;
                Work { ns, cached_kib: kib, cached_writes: 1, ..Work::default() }
            }
            Op::Write | Op::DurableWrite => {
                let ns = flash_ns(&self.write) + self.card.status_ns;
                Work { ns, written_kib: kib, ..Work::default() }
            }
            Op::Discard => {
                let ns = self.erase.base_ns + kib * self.erase.per_kib_ns;
                Work { ns, ..Work::default() }
            }
        }
    }

    /// The limit of the time of any command up to a size, without stalls: base, and per KiB, in ns.
    /// Declared tasks depend on it.
    pub fn limit(&self, op: Op) -> (u64, u64) {
        let flash_op = if op == Op::Write { Op::DurableWrite } else { op };
        let base_ns = self.command(flash_op, 0).ns;
        let per_kib_ns = self.command(flash_op, 1).ns - base_ns;
        if op != Op::Write || !self.has_cache() {
            return (base_ns, per_kib_ns);
        }
        let cached_ns = self.cache.per_kib_ns + self.card.bus_per_kib_ns;
        (base_ns.max(self.cache.base_ns + self.card.status_ns), per_kib_ns.max(cached_ns))
    }

    /// The additional time of such a command if it is not adjacent to the previous one.
    pub fn jump_ns(&self, op: Op) -> u64 {
        match op {
            Op::Read => self.read.jump_ns,
            Op::Write | Op::DurableWrite => self.write.jump_ns,
            Op::Discard => 0,
        }
    }

    /// The times that k2's look-ahead uses for such a command on the flash, in ns: its duration
    /// without delays, and its longest additional time except for pauses. `None`: not measured.
    pub fn model_ns(&self, op: Op, kib: u64) -> Option<(u64, u64)> {
        let (cost, status_ns) = match op {
            Op::Read => (&self.read, 0),
            _ if !self.has_writes => return None,
            _ => (&self.write, self.card.status_ns),
        };
        let usual_ns =
            cost.base_ns + kib * (cost.per_kib_ns + self.card.bus_per_kib_ns) + status_ns;
        let slow_ns = if self.slow.length_us > 0 { cost.slow_ns } else { 0 };
        Some((usual_ns, cost.jump_ns + cost.jitter_ns + slow_ns))
    }

    /// A flush, without the time to write back the cache, which [`Device::stalls_ns`] adds.
    pub fn flush(&self) -> Work {
        Work { ns: self.flush.base_ns, flushes: 1, ..Work::default() }
    }
}
