// SPDX-License-Identifier: MIT OR Apache-2.0
//! The measurements of a device, one after the other, while its knobs are under guard.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use steadyio_core::device::Device;
use steadyio_core::diagnostic;
use steadyio_core::identity::Identity;
use steadyio_core::interrupt::Interrupt;
use steadyio_core::kernel::Kernel;
use steadyio_core::knob_guard::KnobGuard;
use steadyio_probe::cache::Flushes;
use steadyio_probe::claims::Claims;
use steadyio_probe::fit::Times;
use steadyio_probe::place::{Place, Way};
use steadyio_probe::profile::{
    AllSeen, Base, Cache, Card, Cost, Depth, Limits, PROFILE_SCHEMA, Parts, Probe, Profile, Seen,
    Slow, WriteCost,
};
use steadyio_probe::queue::Queue;
use steadyio_probe::traffic::Meter;
use steadyio_probe::{cache, deleting, discard, queue, rounds};

use super::blank;
use super::target::WriteTarget;
use crate::progress::Pace;

/// Of all that is measured.
#[derive(Clone, Copy)]
pub struct Lengths {
    pub reads: Duration,
    /// Each of two.
    pub queue: Duration,
    /// Each of durable and cached ones.
    pub writes: Duration,
}

/// Where writes are measured.
struct Area<'a> {
    path: &'a Path,
    size_bytes: u64,
    takes_discards: bool,
}

pub struct Measuring<'a> {
    pub device: &'a Device,
    pub guard: &'a KnobGuard,
    pub lengths: Lengths,
    /// Whether to fill the target of writes first.
    pub blank: bool,
    pub stop: &'a Interrupt,
}

impl Measuring<'_> {
    fn number(&self, attribute: &str) -> u64 {
        self.guard.queue().read(attribute).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    pub fn all(&self, write: Option<&WriteTarget>) -> anyhow::Result<Profile> {
        let Some(write) = write else {
            return Ok(self.reads(&self.device.node, self.device.size_bytes)?.0);
        };
        let area = Area {
            path: write.path(),
            size_bytes: write.size_bytes(),
            takes_discards: write.is_device() && self.number("discard_max_bytes") > 0,
        };
        if self.blank {
            return self.blank_card(&area);
        }
        let (mut profile, queue) = self.reads(&self.device.node, self.device.size_bytes)?;
        self.writes(&area, queue.as_ref(), &mut profile)?;
        Ok(profile)
    }

    /// Only the part that holds data is measured: a card may answer a read of the rest without its
    /// flash.
    fn blank_card(&self, whole: &Area) -> anyhow::Result<Profile> {
        let Area { path, takes_discards, .. } = *whole;
        let filled = blank::prepare(path, whole.size_bytes, takes_discards, self.stop)?;
        let area = Area { size_bytes: filled.size_bytes, ..*whole };
        let (mut profile, queue) = self.reads(path, area.size_bytes)?;
        self.writes(&area, queue.as_ref(), &mut profile)?;
        if takes_discards {
            let length = self.lengths.writes;
            diagnostic!("steady: writes while data are deleted, {} s at most", length.as_secs());
            let found = deleting::find(path, area.size_bytes, length, self.stop)?;
            profile.deleting = Some(found);
        }
        Ok(Profile { full: Some(filled.full), verified: Some(filled.verified), ..profile })
    }

    fn reads(&self, path: &Path, size_bytes: u64) -> anyhow::Result<(Profile, Option<Queue>)> {
        let mut reading = Place::open(path, size_bytes, Way::Read)?;
        let reads = self.times("reads", &mut reading, 0, self.lengths.reads)?;
        let tags = self.number("nr_requests");
        let length = self.lengths.queue;
        diagnostic!("steady: reads, several at once");
        let queue = queue::find(path, size_bytes, &reads, tags, length, self.stop)?;
        Ok((self.profile(&reads, queue.as_ref()), queue))
    }

    fn meter(&self) -> anyhow::Result<Meter> {
        let disk = self.device.queue.with_file_name("");
        Meter::open(&disk).with_context(|| disk.join("stat").display().to_string())
    }

    /// `flush_ns`: the time of one flush, which is no part of the command that it follows.
    fn times(
        &self,
        what: &str,
        place: &mut Place,
        flush_ns: u64,
        length: Duration,
    ) -> anyhow::Result<Times> {
        let seconds = length.as_secs();
        diagnostic!("steady: {what}, {seconds} s");
        let meter = self.meter()?;
        let (started, mut pace) = (Instant::now(), Pace::new());
        let mut tick = || {
            if pace.is_due(started.elapsed()) {
                diagnostic!("steady: {what}: {} of {seconds} s", started.elapsed().as_secs());
            }
        };
        let rounds = rounds::run(place, &meter, flush_ns, length, self.stop, &mut tick)?;
        Times::of(&rounds, place.writes())
            .ok_or_else(|| anyhow!("{what}: too few samples for a fit"))
    }

    fn profile(&self, reads: &Times, queue: Option<&Queue>) -> Profile {
        let info = self.device.info();
        let kernel = Kernel::running();
        let model = info.model.unwrap_or_default();
        let size_mib = self.device.size_bytes >> 20;
        let steady = env!("CARGO_PKG_VERSION");
        let disk = self.device.queue.with_file_name("");
        let identity = Identity::read(&disk);
        Profile {
            schema: PROFILE_SCHEMA.into(),
            name: profile_name(&model),
            title: format!("{model}, {size_mib} MiB, as measured").trim_matches([' ', ',']).into(),
            source: format!("steady probe {steady} on {}", kernel.release),
            card: Card::new(&model, self.device.size_bytes, queue),
            queue: queue.map(|queue| Depth { depth: queue.depth }),
            read: Cost::of(reads, queue),
            write: None,
            cache: None,
            flush: None,
            erase: None,
            slow: Slow::of(reads),
            seen: AllSeen { read: Seen::of(reads), write: None },
            full: None,
            deleting: None,
            verified: None,
            claims: Claims::read(&disk),
            limits: Limits {
                max_sectors_kb: self.number("max_sectors_kb"),
                nr_requests: self.number("nr_requests"),
            },
            probe: Probe::new(steady, kernel.release, &self.device.disk, &identity),
        }
    }

    fn writes(
        &self,
        area: &Area,
        queue: Option<&Queue>,
        profile: &mut Profile,
    ) -> anyhow::Result<()> {
        let mut place = Place::open(area.path, area.size_bytes, Way::Write)?;
        let is_volatile =
            self.guard.queue().read("write_cache").is_ok_and(|text| text == "write back");
        let mut flushes = None;
        if is_volatile {
            diagnostic!("steady: flushes");
            flushes = Some(Flushes::of(&mut place, self.stop)?);
        }
        let writes = match flushes.filter(|flushes| flushes.show_a_cache()) {
            Some(flushes) => self.cached(area, &mut place, flushes, profile)?,
            None => self.times("writes", &mut place, 0, self.lengths.writes)?,
        };
        if let Some(flushes) = flushes {
            let base_ns = flushes.base_ns().round() as u64;
            profile.flush = Some(Base { base_ns });
            // The device says that it has one: less than any write.
            profile.cache.get_or_insert(Cache { kib: 1, base_ns: 0, per_kib_ns: 0 });
        }
        profile.write = Some(WriteCost::of(&writes, queue));
        profile.seen.write = Some(Seen::of(&writes));
        if area.takes_discards {
            diagnostic!("steady: discards");
            let limit_bytes = self.number("discard_max_bytes");
            profile.erase = discard::line(&place, limit_bytes, self.stop)?.map(Parts::of);
        }
        Ok(())
    }

    /// The times of the flash itself are those of durable writes, without the flushes behind them:
    /// the kernel sends one behind each to a device, and few or none behind those to a file.
    fn cached(
        &self,
        area: &Area,
        place: &mut Place,
        flushes: Flushes,
        profile: &mut Profile,
    ) -> anyhow::Result<Times> {
        diagnostic!("steady: the volatile cache");
        let meter = self.meter()?;
        let traffic = || meter.read().unwrap_or_default();
        if let Some(kib) = cache::capacity_kib(place, &traffic, self.stop)? {
            let accepts = Parts::of(cache::accepts(place, kib, self.stop)?);
            let Parts { base_ns, per_kib_ns } = accepts;
            profile.cache = Some(Cache { kib, base_ns, per_kib_ns });
        }
        let mut durable = Place::open(area.path, area.size_bytes, Way::DurableWrite)?;
        let flush_ns = flushes.base_ns().round() as u64;
        self.times("durable writes", &mut durable, flush_ns, self.lengths.writes)
    }
}

/// Of the model: lower case letters, digits and '-'.
fn profile_name(model: &str) -> String {
    let word = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = model.trim().chars().map(word).collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "probed".into() } else { name.into() }
}
