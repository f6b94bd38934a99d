// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result: a device profile (`docs/spec/profile-1.md`). It is a device spec of the lab, with
//! the measurements behind it.

use serde::{Deserialize, Serialize};
use steadyio_core::identity::Identity;

use crate::claims::Claims;
use crate::deleting::Deleting;
use crate::fit::Times;
use crate::line::Line;
use crate::queue::Queue;
use crate::tail::Unknown;
use crate::verify::Verified;

/// The schema that this version writes.
pub const PROFILE_SCHEMA: &str = "steadyio.profile/1";
/// Of the statement that so few are longer.
pub const CONFIDENCE: f64 = 0.95;
const PRODUCT_CHARS: usize = 6;
/// Consecutive data on one unit: more than any request, so that one request does not become faster.
const STRIPE_KIB: u64 = 1024;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    pub schema: String,
    pub name: String,
    pub title: String,
    pub source: String,
    pub card: Card,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Depth>,
    pub read: Cost,
    /// None: writes were not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<WriteCost>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cache>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flush: Option<Base>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erase: Option<Parts>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow: Option<Slow>,
    pub seen: AllSeen,
    /// Only of a blank card, which was filled first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full: Option<Full>,
    /// None: it takes no discards, either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleting: Option<Deleting>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verified>,
    /// None: it is no card. Earlier profiles have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claims: Option<Claims>,
    pub limits: Limits,
    pub probe: Probe,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Card {
    pub product: String,
    pub capacity_mib: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stripe_kib: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus_per_kib_ns: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Depth {
    pub depth: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    pub base_ns: u64,
    pub per_kib_ns: u64,
    pub jump_ns: u64,
    pub slow_ns: u64,
    pub jitter_ns: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WriteCost {
    #[serde(flatten)]
    pub cost: Cost,
    pub pause_kib: u64,
    pub pause_ns: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cache {
    pub kib: u64,
    pub base_ns: u64,
    pub per_kib_ns: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Base {
    pub base_ns: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Parts {
    pub base_ns: u64,
    pub per_kib_ns: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Slow {
    pub period_us: u64,
    pub length_us: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AllSeen {
    pub read: Seen,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<Seen>,
}

/// What an operation's times rest on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    pub samples: u64,
    pub longest_ns: u64,
    /// For how long it was measured,
    #[serde(default)]
    pub seconds: u64,
    /// and how many commands met other I/O on the disk, and were left out.
    #[serde(default)]
    pub disturbed: u64,
    /// Commands up to this size take these times, larger ones less; 0: each size may take less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact_kib: Option<u64>,
    /// So many percent less, at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faster_percent: Option<u64>,
    /// So much longer was the worst than these times allow.
    pub beyond_ns: u64,
    /// How often one was longer.
    #[serde(default)]
    pub beyond_count: u64,
    /// With 95 % confidence no more than this of a million such commands take longer than the
    /// longest. `None`: they are not independent, or there are too few to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longer_ppm_max: Option<f64>,
    /// By so much one command of a million is longer than most of its size, without slow states and
    /// pauses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub million_ns: Option<u64>,
    /// The same: no more than this, with 95 % confidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub million_ns_max: Option<u64>,
    /// Why `million_ns` is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub million_unknown: Option<String>,
    /// Of pauses how many, the least that was written between two, and the longest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pauses: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_kib_min: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_ns_max: Option<u64>,
}

/// How much of the measured region held data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Full {
    pub percent: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    pub max_sectors_kb: u64,
    pub nr_requests: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    pub steady: String,
    pub kernel: String,
    /// The kernel's name of it, which tells an SSD.
    pub disk: String,
    /// Of the whole disk, as sysfs has it.
    #[serde(default)]
    pub model: String,
    #[serde(default)]
    pub size_bytes: u64,
    /// Of its number; `None`: it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial_sha256: Option<String>,
    pub seconds: u64,
}

fn whole(ns: f64) -> u64 {
    ns.round().max(0.0) as u64
}

impl Cost {
    /// With a queue, what a command spends on the shared bus is the card's.
    ///
    /// The base is above 0 and at least the jitter, as no command takes less than nothing. If the
    /// line has less, the rest is taken from the jump, which a bound adds to each command, too.
    pub fn of(times: &Times, queue: Option<&Queue>) -> Cost {
        let jitter_ns = whole(times.states.jitter_ns);
        let fitted_ns = whole(times.line.base);
        let base_ns = fitted_ns.max(jitter_ns).max(1);
        let bus_per_kib_ns = queue.map_or(0.0, |queue| queue.bus_per_kib_ns);
        Cost {
            base_ns,
            per_kib_ns: whole(times.line.per_kib - bus_per_kib_ns),
            jump_ns: whole(times.jump_ns).saturating_sub(base_ns - fitted_ns),
            slow_ns: whole(times.states.slow_ns),
            jitter_ns,
        }
    }
}

impl WriteCost {
    pub fn of(times: &Times, queue: Option<&Queue>) -> WriteCost {
        WriteCost {
            cost: Cost::of(times, queue),
            pause_kib: whole(times.states.pause_kib),
            pause_ns: whole(times.states.pause_ns),
        }
    }
}

impl Parts {
    pub fn of(line: Line) -> Parts {
        Parts { base_ns: whole(line.base), per_kib_ns: whole(line.per_kib) }
    }
}

impl Slow {
    pub fn of(times: &Times) -> Option<Slow> {
        let period_us = whole(times.states.slow_period_ns / 1_000.0);
        let length_us = whole(times.states.slow_length_ns / 1_000.0).min(period_us / 4 * 3);
        (length_us > 0).then_some(Slow { period_us, length_us })
    }
}

impl Seen {
    /// If a share p of commands were longer, n of them would all be no longer with the probability
    /// (1 - p)^n: p is at most 1 - (1 - confidence)^(1/n).
    pub fn of(times: &Times) -> Seen {
        let share = 1.0 - (1.0 - CONFIDENCE).powf(1.0 / times.samples.max(1) as f64);
        let has_pauses = whole(times.states.pause_kib) > 0;
        let is_stationary = times.tail.err().is_none_or(Unknown::is_of_fit);
        Seen {
            samples: times.samples,
            longest_ns: times.longest_ns,
            seconds: times.length.as_secs(),
            disturbed: times.disturbed,
            exact_kib: times.faster.map(|faster| whole(faster.exact_kib)),
            faster_percent: times.faster.map(|faster| whole(100.0 * faster.share)),
            beyond_ns: whole(times.beyond_ns),
            beyond_count: times.states.rare,
            longer_ppm_max: is_stationary.then_some((share * 1e7).round() / 10.0),
            million_ns: times.tail.ok().map(|tail| whole(tail.estimate)),
            million_ns_max: times.tail.ok().map(|tail| whole(tail.at_most)),
            million_unknown: times.tail.err().map(|why| why.to_string()),
            pauses: has_pauses.then_some(times.states.pauses),
            pause_kib_min: has_pauses.then_some(times.states.pause_kib_min),
            pause_ns_max: has_pauses.then_some(whole(times.states.pause_ns_max)),
        }
    }
}

impl Profile {
    /// One that was written before, of this version or an earlier one.
    pub fn parse(text: &str) -> Result<Profile, String> {
        let profile: Profile = toml::from_str(text).map_err(|error| error.to_string())?;
        if profile.schema != PROFILE_SCHEMA {
            let schema = profile.schema.escape_debug();
            return Err(format!("schema = \"{schema}\": must be \"{PROFILE_SCHEMA}\""));
        }
        Ok(profile)
    }
}

impl Probe {
    pub fn new(steady: &str, kernel: String, disk: &str, identity: &Identity) -> Probe {
        Probe {
            steady: steady.into(),
            kernel,
            disk: disk.into(),
            model: identity.model.clone(),
            size_bytes: identity.size_bytes,
            serial_sha256: identity.serial_sha256(),
            seconds: 0,
        }
    }
}

impl Card {
    pub fn new(model: &str, size_bytes: u64, queue: Option<&Queue>) -> Card {
        let product: String =
            model.chars().filter(char::is_ascii_graphic).take(PRODUCT_CHARS).collect();
        Card {
            product: if product.is_empty() { "PROBED".into() } else { product },
            capacity_mib: size_bytes >> 20,
            units: queue.map(|queue| queue.units),
            stripe_kib: queue.map(|_| STRIPE_KIB),
            bus_per_kib_ns: queue.map(|queue| whole(queue.bus_per_kib_ns)),
        }
    }
}
