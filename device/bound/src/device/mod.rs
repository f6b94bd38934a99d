// SPDX-License-Identifier: MIT OR Apache-2.0
//! The longest time of a command, from a card's times in a device spec of the lab
//! (`docs/devices.md`) or a profile. `commands` and `analysis` call it.
//!
//! `spec` and `blank` have the tables of the file, `times` the time of one command, and `checks` rejects
//! contradictions. This file reads a device, and computes its stalls.

mod blank;
mod checks;
mod limits;
mod spec;
mod times;

use crate::fault::{Fault, fault};
use crate::tasks::{BackgroundOp, TaskSet, release};
use crate::{BoundError, Work};
pub use spec::{DEVICE_SCHEMAS, Device};
pub use times::Op;

/// The number of tasks that k2 takes per disk (`K2_DECLARED_MAX`).
const DECLARED_MAX: usize = 32;
/// The size of k2's smallest command.
const SMALLEST_KIB: u64 = 4;

impl Device {
    /// Reads and checks the file of a card, for which bounds exist.
    pub fn parse(text: &str) -> Result<Device, BoundError> {
        let device = Device::parse_any(text)?;
        checks::is_card(&device).map_err(|fault| fault.in_file(text))?;
        Ok(device)
    }

    /// Reads the file of any disk. Its usual times are valid even without a bound.
    pub fn parse_any(text: &str) -> Result<Device, BoundError> {
        let loose: toml::Table =
            text.parse().map_err(|error: toml::de::Error| BoundError(error.to_string()))?;
        checks::kind(&loose).map_err(|fault| fault.in_file(text))?;
        let mut device: Device =
            toml::from_str(text).map_err(|error| BoundError(error.to_string()))?;
        device.has_writes = loose.contains_key("write");
        device.has_erase = loose.contains_key("erase");
        device.has_flush = loose.contains_key("flush");
        checks::all(&device).map_err(|fault| fault.in_file(text))?;
        if device.is_profile() {
            device.take_limits();
        }
        Ok(device)
    }

    /// Checks the values of a file, but not whether its times fit together: `steady probe` compares
    /// profiles of earlier versions, too.
    pub fn check_ranges(text: &str) -> Result<(), BoundError> {
        let device: Device = toml::from_str(text).map_err(|error| BoundError(error.to_string()))?;
        checks::contents(&device).map_err(|fault| fault.in_file(text))
    }

    /// Checks that all times are known that a task set needs.
    pub fn check(&self, set: &TaskSet) -> Result<(), BoundError> {
        Ok(self.check_set(set)?)
    }

    /// The same, of the set in this file.
    pub fn check_file(&self, set: &TaskSet, file: &str) -> Result<(), BoundError> {
        self.check_set(set).map_err(|fault| fault.in_file(file))
    }

    fn check_set(&self, set: &TaskSet) -> Result<(), Fault> {
        if let Some(place) = set.written_by().filter(|_| !self.has_writes) {
            let text = format!(
                "{}: has writes, but {} has no [write] (add it with steady probe --write)",
                set.name, self.name
            );
            return fault(place, text);
        }
        self.check_measured(set)?;
        self.check_declared(set)?;
        if !self.has_cache() {
            return Ok(());
        }
        self.check_durable_background(set)?;
        self.check_durable(set)
    }

    /// A probe measures no discards in a file, and flushes only with writes. Without [flush], a
    /// device whose writes were measured has no volatile cache, and gets no flush.
    fn check_measured(&self, set: &TaskSet) -> Result<(), Fault> {
        let Some(background) = set.background.as_ref().filter(|_| self.is_profile()) else {
            return Ok(());
        };
        let (name, discard_kib) = (&self.name, background.discard_kib);
        if discard_kib > 0 && !self.has_erase {
            let text = format!(
                "discard_kib = {discard_kib}: must be 0, as {name} has no [erase] (steady probe \
                 --write measures discards of a partition or disk, not of a file)"
            );
            return fault("background/discard_kib", text);
        }
        if let Some(us) = background.flush_distance_us_min {
            if !self.has_flush && !self.has_writes {
                let text = format!(
                    "flush_distance_us_min = {us}: must be absent, as {name} has no [flush] (add it \
                     with steady probe --write)"
                );
                return fault("background/flush_distance_us_min", text);
            }
        }
        Ok(())
    }

    /// Rejects declarations that k2 rejects.
    fn check_declared(&self, set: &TaskSet) -> Result<(), Fault> {
        if set.k2.rt_block_us == 0 {
            return Ok(());
        }
        let count = set.declared().count();
        if count > DECLARED_MAX {
            let text = format!(
                "{count} tasks with rt_block_us: k2 takes at most {DECLARED_MAX} declarations"
            );
            return fault("k2/rt_block_us", text);
        }
        let smallest_ns = |op: Op| {
            let (base_ns, per_kib_ns) = self.limit(op);
            base_ns + set.host.command_us * 1_000 + SMALLEST_KIB * per_kib_ns
        };
        let least_us = smallest_ns(Op::Read).min(smallest_ns(Op::Write)).div_ceil(1_000);
        for (number, task) in set.declared() {
            let block_us = task.block_us(&set.k2);
            if block_us < least_us {
                let (place, key) = match task.block_us {
                    Some(_) => (format!("task/{number}/block_us"), "block_us"),
                    None => ("k2/rt_block_us".into(), "rt_block_us"),
                };
                let text = format!(
                    "task {}: {key} = {block_us}: must be at least {least_us}, the limit of the \
                     smallest command",
                    task.name
                );
                return fault(place, text);
            }
            let place = format!("task/{number}/period_us");
            task.check_period(0).or_else(|text| fault(place, text))?;
        }
        Ok(())
    }

    /// The kernel; `None` if unknown.
    fn kernel<'a>(&'a self, set: &'a TaskSet) -> Option<&'a str> {
        let profile = (!self.probe.kernel.is_empty()).then_some(self.probe.kernel.as_str());
        set.host.kernel.as_deref().or(profile)
    }

    /// Whether durable writes overlap with background. Before 6.12 a durable write bypasses k2. k2 does
    /// not see that the task waits, and a device with a queue accepts background at the same time.
    /// An unknown kernel counts as old.
    pub fn overlaps_durable(&self, set: &TaskSet) -> bool {
        let has_queue = !self.queue.is_empty() || self.host.slots > 1;
        has_queue && self.kernel(set).is_none_or(bypasses)
    }

    /// Before 6.12, the background's writes with FUA bypass k2, in any size and number.
    fn check_durable_background(&self, set: &TaskSet) -> Result<(), Fault> {
        const PLACE: &str = "background/durable";
        let Some(background) = &set.background else { return Ok(()) };
        if !background.durable || background.op == BackgroundOp::Read {
            return Ok(());
        }
        let Some(kernel) = self.kernel(set) else {
            return fault(
                PLACE,
                "background: durable = true: depends on the kernel, state host.kernel (such as \
                 \"6.12\"); before 6.12 its writes with FUA bypass k2",
            );
        };
        if !bypasses(kernel) {
            return Ok(());
        }
        let text = format!(
            "background: durable = true on Linux {kernel}: its writes with FUA bypass k2 there, so \
             nothing limits them (use 6.12 or later, or set durable = false and state them as a \
             task of level 0)"
        );
        fault(PLACE, text)
    }

    /// The kernel sends a flush after each durable write. The flush bypasses k2, like the write on
    /// 6.1.
    fn check_durable(&self, set: &TaskSet) -> Result<(), Fault> {
        let Some(durable) = set.tasks.iter().find(|task| task.durable) else { return Ok(()) };
        let fail = |place: String, name: &str, text: &str| {
            let text = format!(
                "task {name}: {text}, as {} has a volatile cache: the flush after each write of \
                 {} bypasses k2",
                self.name, durable.name
            );
            fault(place, text)
        };
        // With more in flight, commands overtake the flush: docs/reference/bound.md, "Durable
        // writes".
        if set.k2.inflight_max > 1 {
            let text = format!("durable = true, inflight_max = {}: must be 1", set.k2.inflight_max);
            return fail("k2/inflight_max".into(), &durable.name, &text);
        }
        for (number, task) in set.tasks.iter().enumerate() {
            let place = |key: &str| format!("task/{number}/{key}");
            if task.durable && task.at_once > 1 {
                let text = format!("durable = true, at_once = {}: must be 1", task.at_once);
                return fail(place("at_once"), &task.name, &text);
            }
            match (task.durable, task.level) {
                (true, level @ 1..) => {
                    let text = format!("durable = true, level = {level}: must be level 0");
                    return fail(place("level"), &task.name, &text);
                }
                (false, 0) => {
                    return fail(place("level"), &task.name, "level = 0: must be 1 or more");
                }
                _ => {}
            }
        }
        let flushes = set.background.as_ref().and_then(|bg| bg.flush_distance_us_min);
        if let Some(distance_us) = flushes {
            let text = format!(
                "durable = true with flush_distance_us_min = {distance_us}: no bound is known"
            );
            return fail("background/flush_distance_us_min".into(), &durable.name, &text);
        }
        Ok(())
    }

    /// The largest write of up to `kib` that goes into the cache; 0: none.
    pub fn cached_kib_max(&self, kib: u64) -> u64 {
        kib.min(self.cache.kib)
    }

    /// The probed disk: the kernel's name of the disk, its model, its size in bytes, and a hash of
    /// its number. A spec of the lab has none of these.
    pub fn probed(&self) -> Probed<'_> {
        let probe = &self.probe;
        Probed {
            disk: &probe.disk,
            model: &probe.model,
            size_bytes: probe.size_bytes,
            serial_sha256: probe.serial_sha256.as_deref(),
            max_sectors_kb: self.limits.max_sectors_kb,
        }
    }

    /// Whether the times of writes are known.
    pub fn has_writes(&self) -> bool {
        self.has_writes
    }

    /// The largest amount of data that can be written, to the flash or into the cache, in this
    /// time.
    pub fn written_kib_max(&self, ns: u64) -> u64 {
        let units = self.card.units.max(1);
        let flash_ns = self.write.per_kib_ns / units;
        let kib_ns = if self.has_cache() { flash_ns.min(self.cache.per_kib_ns) } else { flash_ns };
        ns / kib_ns.max(1)
    }

    /// The highest number of times that the cache is full while it takes this amount. From one such
    /// write to the next, both included, more is written than it holds. Adjacent
    /// distances share a write; every second distance shares none.
    fn found_full(&self, cached_kib: u64, write_kib_max: u64) -> u64 {
        if cached_kib <= self.cache.kib {
            return 1;
        }
        let apart_kib = self.cache.kib.saturating_sub(write_kib_max).max(1);
        let sharing = cached_kib.saturating_sub(write_kib_max) / apart_kib + 1;
        let pairs = cached_kib.div_ceil(self.cache.kib) - 1;
        sharing.min(pairs.saturating_mul(2).saturating_add(1))
    }

    /// How often the cache is written back because it is full, and the total amount: at most its
    /// contents plus the new data.
    fn written_back(&self, work: Work, around: &Around) -> (u64, u64) {
        if !around.cache_is_used {
            return (0, 0);
        }
        let full = if work.cached_kib > 0 {
            let found = |cached_kib| self.found_full(cached_kib, around.write_kib_max);
            let in_one = found(work.cached_kib.saturating_add(around.between_kib));
            let in_each = found(work.cached_kib).saturating_add(around.waits - 1);
            in_one.min(in_each).min(work.cached_writes)
        } else {
            0
        };
        let held_kib = self.cache.kib.saturating_add(around.between_kib);
        let held_kib = held_kib.min(self.cache.kib.saturating_mul(around.waits));
        let each_full_kib = full.saturating_add(work.flushes).saturating_mul(self.cache.kib);
        (full, each_full_kib.min(held_kib.saturating_add(work.cached_kib)))
    }

    /// The time in addition to the commands: pauses of the flash and the write-back of the cache,
    /// which depend on the data written, and once the longest excess that a probe observed.
    pub fn stalls_ns(&self, work: Work, around: &Around) -> u64 {
        let (full, back_kib) = self.written_back(work, around);
        let full_ns = full.saturating_mul(self.flush.base_ns);
        let back_ns = back_kib.saturating_mul(self.back_per_kib_ns()).saturating_add(full_ns);
        let beyond_ns = self.seen.read.beyond_ns.max(self.seen.write.beyond_ns);
        let pauses = self.pauses(work.written_kib.saturating_add(back_kib), around);
        back_ns.saturating_add(beyond_ns).saturating_add(pauses.saturating_mul(self.write.pause_ns))
    }

    /// The cost of writing back the cache, without the bus of a spec. A probe measures both
    /// together, and separates them by the overlap of reads, so only the sum of its parts is exact.
    fn back_per_kib_ns(&self) -> u64 {
        let bus_ns = if self.is_profile() { self.card.bus_per_kib_ns } else { 0 };
        self.write.per_kib_ns + bus_ns
    }

    /// The same device, which may exceed these times by `ns`, once.
    pub fn with_overrun(&self, ns: u64) -> Device {
        let mut device = self.clone();
        let seen = &mut device.seen;
        let beyond_ns = seen.read.beyond_ns.max(seen.write.beyond_ns);
        seen.read.beyond_ns = beyond_ns.saturating_add(ns);
        device
    }

    fn pauses(&self, written_kib: u64, around: &Around) -> u64 {
        if self.write.pause_kib == 0 || written_kib == 0 {
            return 0;
        }
        let in_one = written_kib.saturating_add(around.between_kib) / self.write.pause_kib + 1;
        in_one.min((written_kib / self.write.pause_kib).saturating_add(around.waits))
    }
}

/// Whether writes with FUA bypass k2: before Linux 6.12.
fn bypasses(kernel: &str) -> bool {
    release(kernel).is_none_or(|release| release < (6, 12))
}

/// The disk of a profile; empty or 0 if the profile has no value.
#[derive(Debug, Clone, Copy)]
pub struct Probed<'a> {
    pub disk: &'a str,
    pub model: &'a str,
    pub size_bytes: u64,
    pub serial_sha256: Option<&'a str>,
    /// The largest request, without a scheduler.
    pub max_sectors_kb: Option<u64>,
}

/// The effect of others on the flash before the work in a window, and between its parts.
#[derive(Debug, Clone, Copy)]
pub struct Around {
    /// The number of periods in the window in which the task waits; between them its thread
    /// computes.
    pub waits: u64,
    /// The data that others may write meanwhile without the task waiting for it: while it computes,
    /// during durable writes that bypass k2, and at any time with several commands in flight.
    pub between_kib: u64,
    /// The largest write into the cache; the cache rejects it when less is free.
    pub write_kib_max: u64,
    /// Whether anything is written into the cache.
    pub cache_is_used: bool,
}
