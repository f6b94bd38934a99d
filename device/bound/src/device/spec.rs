// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables in the file of a device: a spec of the lab, or a profile of `steady probe`.

use serde::Deserialize;
use serde::de::Deserializer;
use steadyio_core::range::bounded;

use super::blank::{Deleting, Full, Verified};
use super::limits::LONGEST_NS;

/// The supported schemas: that of the lab's devices, and that of `steady probe`.
pub const DEVICE_SCHEMAS: [&str; 2] = ["steadyio.device/1", "steadyio.profile/1"];
/// A day: a slow state that comes more rarely is not found by a probe of 12 h.
const PERIOD_US_MAX: u64 = 86_400_000_000;
const UNITS_MAX: u64 = 16;
const PER_KIB_NS_MAX: u64 = 10_000_000;
const CACHE_KIB_MAX: u64 = 65_536;
/// More than a card writes between two rare pauses, of which a probe of 12 h meets a few.
const PAUSE_KIB_MAX: u64 = 1 << 40;
const RUNS_MAX: u64 = 16;
const SLOTS_MAX: u64 = 32;

/// A card. The parser skips the file's description of its contents and identity.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    pub(super) schema: String,
    #[serde(default, rename = "kind")]
    _kind: String,
    pub name: String,
    #[serde(default)]
    pub title: String,
    #[serde(default, rename = "source")]
    pub(super) _source: String,
    pub(super) card: Card,
    #[serde(default)]
    pub(super) queue: toml::Table,
    #[serde(default)]
    pub(super) host: Host,
    pub(super) read: Cost,
    /// The cost of writes; a profile of reads only has none.
    #[serde(default)]
    pub(super) write: Cost,
    #[serde(skip)]
    pub(super) has_writes: bool,
    /// Whether the file has the times of discards and of flushes; if not, they are defaults.
    #[serde(skip)]
    pub(super) has_erase: bool,
    #[serde(skip)]
    pub(super) has_flush: bool,
    #[serde(default)]
    pub(super) erase: EraseCost,
    #[serde(default)]
    pub(super) flush: FlushCost,
    #[serde(default)]
    pub(super) cache: Cache,
    #[serde(default)]
    pub(super) slow: Slow,
    /// Tables that must be empty, because no bound is known with either.
    #[serde(default)]
    pub(super) stall: toml::Table,
    #[serde(default)]
    pub(super) heat: toml::Table,
    #[serde(default)]
    pub(super) fault: Vec<toml::Table>,
    #[serde(default, rename = "backing")]
    pub(super) _backing: toml::Table,
    #[serde(default, rename = "power")]
    pub(super) _power: toml::Table,
    /// The card's own statements. No bound depends on them.
    #[serde(default, rename = "claims")]
    pub(super) _claims: toml::Table,
    #[serde(default, rename = "full")]
    pub(super) _full: Option<Full>,
    #[serde(default, rename = "deleting")]
    pub(super) _deleting: Option<Deleting>,
    #[serde(default)]
    pub(super) verified: Option<Verified>,
    /// The observations of a profile.
    #[serde(default)]
    pub(super) seen: AllSeen,
    #[serde(default)]
    pub(super) limits: Limits,
    #[serde(default)]
    pub(super) probe: Probe,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Card {
    #[serde(default, deserialize_with = "bounded::<_, 0, PER_KIB_NS_MAX>")]
    pub(super) bus_per_kib_ns: u64,
    #[serde(default, deserialize_with = "bounded::<_, 0, LONGEST_NS>")]
    pub(super) status_ns: u64,
    #[serde(default, rename = "product")]
    pub(super) _product: String,
    #[serde(default, rename = "capacity_mib", deserialize_with = "whole")]
    pub(super) _capacity_mib: u64,
    #[serde(default, rename = "seed", deserialize_with = "whole")]
    pub(super) _seed: u64,
    #[serde(default, deserialize_with = "bounded::<_, 0, UNITS_MAX>")]
    pub(super) units: u64,
    #[serde(default, rename = "stripe_kib", deserialize_with = "whole")]
    pub(super) _stripe_kib: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cost {
    #[serde(deserialize_with = "bounded::<_, 0, LONGEST_NS>")]
    pub(super) base_ns: u64,
    #[serde(deserialize_with = "bounded::<_, 0, PER_KIB_NS_MAX>")]
    pub(super) per_kib_ns: u64,
    #[serde(default, deserialize_with = "bounded::<_, 0, LONGEST_NS>")]
    pub(super) jump_ns: u64,
    #[serde(default, deserialize_with = "bounded::<_, 0, LONGEST_NS>")]
    pub(super) slow_ns: u64,
    #[serde(default, deserialize_with = "bounded::<_, 0, LONGEST_NS>")]
    pub(super) jitter_ns: u64,
    /// For writes only.
    #[serde(default, deserialize_with = "bounded::<_, 0, PAUSE_KIB_MAX>")]
    pub(super) pause_kib: u64,
    #[serde(default, deserialize_with = "bounded::<_, 0, LONGEST_NS>")]
    pub(super) pause_ns: u64,
    /// The number of writes that jump. It is ignored, because in the worst case all do.
    #[serde(default, rename = "runs", deserialize_with = "bounded::<_, 0, RUNS_MAX>")]
    _runs: u64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct EraseCost {
    #[serde(deserialize_with = "bounded::<_, 0, LONGEST_NS>")]
    pub(super) base_ns: u64,
    #[serde(deserialize_with = "bounded::<_, 0, PER_KIB_NS_MAX>")]
    pub(super) per_kib_ns: u64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FlushCost {
    #[serde(deserialize_with = "bounded::<_, 0, LONGEST_NS>")]
    pub(super) base_ns: u64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Cache {
    #[serde(deserialize_with = "bounded::<_, 0, CACHE_KIB_MAX>")]
    pub(super) kib: u64,
    #[serde(deserialize_with = "bounded::<_, 0, LONGEST_NS>")]
    pub(super) base_ns: u64,
    #[serde(deserialize_with = "bounded::<_, 0, PER_KIB_NS_MAX>")]
    pub(super) per_kib_ns: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Slow {
    #[serde(deserialize_with = "bounded::<_, 0, PERIOD_US_MAX>")]
    pub(super) period_us: u64,
    #[serde(deserialize_with = "bounded::<_, 0, PERIOD_US_MAX>")]
    pub(super) length_us: u64,
}

/// The SCSI host of a disk that is no MMC card.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Host {
    /// The number of commands at a time.
    #[serde(deserialize_with = "bounded::<_, 1, SLOTS_MAX>")]
    pub(super) slots: u64,
}

impl Default for Host {
    fn default() -> Host {
        Host { slots: 1 }
    }
}

/// The limits of requests, without a scheduler.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Limits {
    #[serde(default, deserialize_with = "some_whole")]
    pub(super) max_sectors_kb: Option<u64>,
}

/// The probed disk.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Probe {
    /// The kernel's name of the disk.
    #[serde(default)]
    pub(super) disk: String,
    /// The release of the kernel.
    #[serde(default)]
    pub(super) kernel: String,
    /// The model of the disk, if the probe recorded it.
    #[serde(default)]
    pub(super) model: String,
    #[serde(default, deserialize_with = "whole")]
    pub(super) size_bytes: u64,
    pub(super) serial_sha256: Option<String>,
}

/// The observations on which a profile's times depend.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct AllSeen {
    #[serde(default)]
    pub(super) read: Seen,
    #[serde(default)]
    pub(super) write: Seen,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Seen {
    /// The number of commands; `None`: an early version of the probe.
    #[serde(default, deserialize_with = "some_whole")]
    pub(super) samples: Option<u64>,
    #[serde(default, deserialize_with = "bounded::<_, 0, LONGEST_NS>")]
    pub(super) longest_ns: u64,
    /// The time by which the worst command exceeded the model.
    #[serde(default, deserialize_with = "bounded::<_, 0, LONGEST_NS>")]
    pub(super) beyond_ns: u64,
    /// The limits of pauses if the times have the usual ones: shortest distance, and longest pause.
    #[serde(default, deserialize_with = "kib")]
    pub(super) pause_kib_min: Option<u64>,
    #[serde(default, deserialize_with = "ns")]
    pub(super) pause_ns_max: Option<u64>,
}

/// Any number that TOML has.
fn whole<'de, D: Deserializer<'de>>(de: D) -> Result<u64, D::Error> {
    bounded::<D, 0, { i64::MAX as u64 }>(de)
}

fn some_whole<'de, D: Deserializer<'de>>(de: D) -> Result<Option<u64>, D::Error> {
    whole(de).map(Some)
}

fn kib<'de, D: Deserializer<'de>>(de: D) -> Result<Option<u64>, D::Error> {
    bounded::<D, 0, PAUSE_KIB_MAX>(de).map(Some)
}

fn ns<'de, D: Deserializer<'de>>(de: D) -> Result<Option<u64>, D::Error> {
    bounded::<D, 0, LONGEST_NS>(de).map(Some)
}

// The defaults are those of the emulated card, lab/steady_lab/devices/emmc.py.

impl Default for EraseCost {
    fn default() -> EraseCost {
        EraseCost { base_ns: 1_000_000, per_kib_ns: 0 }
    }
}

impl Default for FlushCost {
    fn default() -> FlushCost {
        FlushCost { base_ns: 200_000 }
    }
}

impl Default for Cache {
    fn default() -> Cache {
        Cache { kib: 0, base_ns: 20_000, per_kib_ns: 4_000 }
    }
}

impl Device {
    pub(super) fn is_profile(&self) -> bool {
        self.schema == DEVICE_SCHEMAS[1]
    }

    /// Whether writes end in a volatile cache, so that the kernel sends a flush after each durable
    /// one.
    pub fn has_cache(&self) -> bool {
        self.cache.kib > 0
    }

    /// A profile has the usual times in the places of a spec's limits.
    pub(super) fn take_limits(&mut self) {
        let seen = &self.seen.write;
        if let (Some(kib), Some(ns)) = (seen.pause_kib_min, seen.pause_ns_max) {
            self.write.pause_kib = self.write.pause_kib.min(kib).max(1);
            self.write.pause_ns = self.write.pause_ns.max(ns);
        }
    }
}
