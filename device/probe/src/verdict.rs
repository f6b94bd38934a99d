// SPDX-License-Identifier: MIT OR Apache-2.0
//! Does a card hold a rate of writing, and with which buffer?
//!
//! It follows from a profile. The program writes blocks one after the other. Each is durable before
//! the next: commands, and a flush if the card has a volatile cache. Pauses come as close together
//! and last as long as the probe has met them at worst. If it has measured writes while data were
//! deleted, the program deletes as much as it writes. A card that lost data holds no rate.
//!
//! A card may work on several stripes of a large command at once. Its profile has only limits of such
//! a command's time; and not every deletion delays a write as long as the worst one. So there are two
//! rates. Between them the answer is unknown.

use serde::Serialize;

use crate::deleting::{BLOCK_KIB, PIECE_KIB};
use crate::profile::{Profile, Seen};
use crate::verify::Verified;

const NS_PER_S: f64 = 1e9;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// With two blocks: one is filled while the other is written.
    Holds,
    HoldsWithBuffer,
    /// The profile does not say how long commands of this size take, or how often a deletion delays one
    /// so long.
    Unknown,
    DoesNotHold,
    /// Written data could not be read back.
    LosesData,
}

/// Rates in KiB/s.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    pub answer: Answer,
    pub rate_kib_s: u64,
    pub block_kib: u64,
    /// What the card writes in the long run.
    pub usual_kib_s: u64,
    /// The same if all pauses and deletions are as the worst ones.
    pub least_kib_s: u64,
    /// The same if deletions are as usual, and commands larger than `exact_kib` are all shorter by
    /// `faster_percent`.
    pub most_kib_s: u64,
    /// Whether such a block has commands that may be shorter.
    #[serde(skip)]
    pub may_be_faster: bool,
    /// The longest time in which no block becomes durable.
    pub longest_ns: u64,
    /// What the program has to keep meanwhile, with the block that it fills.
    pub buffer_kib: u64,
}

/// Commands of more than `exact_kib` take less, by this share of their time.
#[derive(Clone, Copy)]
struct Faster {
    exact_kib: u64,
    share: f64,
}

impl Faster {
    const NONE: Faster = Faster { exact_kib: 0, share: 0.0 };

    /// The largest share that the profile allows, which has whole percent.
    fn most(seen: &Seen) -> Faster {
        let share = |percent: u64| ((percent as f64 + 0.5) / 100.0).min(1.0);
        let share = seen.faster_percent.map_or(0.0, share);
        Faster { exact_kib: seen.exact_kib.unwrap_or(0), share }
    }
}

/// Of one block.
struct Cost {
    /// In the usual and in the slow state, without pauses.
    usual_ns: f64,
    slow_ns: f64,
    /// The part of the time that the slow state takes.
    slow_share: f64,
}

impl Cost {
    fn of(profile: &Profile, block_kib: u64, faster: Faster) -> Option<Cost> {
        let write = &profile.write.as_ref()?.cost;
        let command_kib = profile.limits.max_sectors_kb.max(4).min(block_kib);
        let commands = block_kib.div_ceil(command_kib);
        let bus_per_kib_ns = profile.card.bus_per_kib_ns.unwrap_or(0);
        let flush_ns = profile.flush.as_ref().map_or(0, |flush| flush.base_ns);
        let command_ns = |kib: u64| {
            let ns = write.base_ns + write.jump_ns + kib * (write.per_kib_ns + bus_per_kib_ns);
            ns as f64 * if kib > faster.exact_kib { 1.0 - faster.share } else { 1.0 }
        };
        let last_kib = block_kib - (commands - 1) * command_kib;
        let whole_ns = (commands - 1) as f64 * command_ns(command_kib);
        let usual_ns = (whole_ns + command_ns(last_kib) + flush_ns as f64).max(1.0);
        let slow_share = profile.slow.as_ref().map_or(0.0, |slow| {
            slow.length_us as f64 / slow.period_us.max(slow.length_us).max(1) as f64
        });
        Some(Cost { usual_ns, slow_ns: usual_ns + (commands * write.slow_ns) as f64, slow_share })
    }

    /// Between slow states and in them, as long as these last.
    fn mean_ns(&self) -> f64 {
        // In a share of the time, not of the blocks.
        1.0 / ((1.0 - self.slow_share) / self.usual_ns + self.slow_share / self.slow_ns)
    }
}

/// The longest pauses, as close together as the probe has met them.
struct Pauses {
    kib_min: u64,
    ns_max: u64,
}

impl Pauses {
    /// All that may come while this much is written.
    fn most_ns(&self, kib: u64) -> u64 {
        (kib.checked_div(self.kib_min).unwrap_or(0) + 1).saturating_mul(self.ns_max)
    }
}

/// What deletions add to writes; nothing if it was not measured.
struct Deletions {
    /// The longest wait of a write, for each piece.
    waits: Pauses,
    /// Time that they add to a KiB: usually, and if all are as the worst one.
    per_kib_ns: f64,
    worst_per_kib_ns: f64,
}

impl Deletions {
    const NONE: Deletions = Deletions {
        waits: Pauses { kib_min: 0, ns_max: 0 },
        per_kib_ns: 0.0,
        worst_per_kib_ns: 0.0,
    };

    fn of(profile: &Profile) -> Option<Deletions> {
        let Some(deleting) = &profile.deleting else { return Some(Deletions::NONE) };
        let alone_ns = Cost::of(profile, BLOCK_KIB, Faster::NONE)?.mean_ns()
            + of_pauses_ns(profile, BLOCK_KIB)?.0;
        let took_ns = BLOCK_KIB as f64 * NS_PER_S / deleting.kib_s.max(1) as f64;
        let per_kib_ns = (took_ns - alone_ns).max(0.0) / BLOCK_KIB as f64;
        let ns_max = deleting.longest_ns.saturating_sub(alone_ns as u64);
        let worst_per_kib_ns = (ns_max as f64 / PIECE_KIB as f64).max(per_kib_ns);
        Some(Deletions {
            waits: Pauses { kib_min: PIECE_KIB, ns_max },
            per_kib_ns,
            worst_per_kib_ns,
        })
    }

    /// Time that they add to each KiB next to the longest waits.
    fn rest_per_kib_ns(&self) -> f64 {
        (self.per_kib_ns - self.waits.ns_max as f64 / PIECE_KIB as f64).max(0.0)
    }
}

/// More blocks in a row are not tried: the limit of all is used.
const BLOCKS_MAX: u64 = 10_000;

/// What the program holds at most without slow states, in KiB, at a rate that the card keeps in the
/// long run. It is busy from the first full block on, until it has written one before the next is
/// full; just before it has written *n*, all that came is held but *n* - 1 blocks.
fn held_kib(rate: f64, block_kib: u64, usual_ns: f64, pauses: [&Pauses; 2]) -> f64 {
    let block = block_kib as f64;
    let mut most = 0.0_f64;
    for blocks in 1..=BLOCKS_MAX {
        let paused_ns = pauses.map(|pauses| pauses.most_ns(blocks * block_kib) as f64);
        let busy_ns = blocks as f64 * usual_ns + paused_ns.iter().sum::<f64>();
        let came = rate * busy_ns / NS_PER_S;
        most = most.max(block + came - (blocks - 1) as f64 * block);
        if came <= blocks as f64 * block {
            return most;
        }
    }
    let ns_max = pauses.map(|pauses| pauses.ns_max as f64);
    2.0 * block + rate * ns_max.iter().sum::<f64>() / NS_PER_S
}

/// What pauses add to a block: usually, and if all are as the worst ones.
fn of_pauses_ns(profile: &Profile, block_kib: u64) -> Option<(f64, f64)> {
    let (write, seen) = (profile.write.as_ref()?, profile.seen.write.as_ref()?);
    let block = block_kib as f64;
    let per_block = |ns: u64, kib: u64| if kib > 0 { ns as f64 * block / kib as f64 } else { 0.0 };
    let usual_ns = per_block(write.pause_ns, write.pause_kib);
    let ns_max = seen.pause_ns_max.unwrap_or(write.pause_ns);
    let worst_ns = per_block(ns_max, seen.pause_kib_min.unwrap_or(write.pause_kib));
    Some((usual_ns, worst_ns.max(usual_ns)))
}

/// The longest time in which no block becomes durable.
fn longest_ns(profile: &Profile, seen: &Seen, paused_ns: u64) -> u64 {
    let flush_ns = profile.flush.as_ref().map_or(0, |flush| flush.base_ns);
    let deleting_ns = profile.deleting.as_ref().map_or(0, |deleting| deleting.longest_ns);
    (seen.longest_ns + flush_ns).max(paused_ns).max(deleting_ns)
}

/// `None`: the profile has no writes.
pub fn verdict(profile: &Profile, rate_kib_s: u64, block_kib: u64) -> Option<Verdict> {
    let (write, seen) = (profile.write.as_ref()?, profile.seen.write.as_ref()?);
    let cost = Cost::of(profile, block_kib, Faster::NONE)?;
    let shortest = Cost::of(profile, block_kib, Faster::most(seen))?;
    let (pauses_ns, worst_ns) = of_pauses_ns(profile, block_kib)?;
    let deletions = Deletions::of(profile)?;
    let block = block_kib as f64;
    let kib_s = |ns: f64| block * NS_PER_S / ns;
    let least_ns = worst_ns + block * deletions.worst_per_kib_ns;
    let least_kib_s = kib_s(cost.mean_ns() + least_ns);
    let most_kib_s = kib_s(shortest.mean_ns() + worst_ns + block * deletions.per_kib_ns);
    let slow_kib_s = kib_s(cost.slow_ns + least_ns);
    let pauses = Pauses {
        kib_min: seen.pause_kib_min.unwrap_or(write.pause_kib),
        ns_max: seen.pause_ns_max.unwrap_or(write.pause_ns),
    };
    let paused_ns = pauses.most_ns(block_kib).saturating_add(cost.slow_ns.ceil() as u64);
    let longest_ns = longest_ns(profile, seen, paused_ns);
    let rate = rate_kib_s as f64;
    // The surplus of a slow state, and the data of the blocks that a stall delays.
    let slow_s = profile.slow.as_ref().map_or(0.0, |slow| slow.length_us as f64 / 1e6);
    let surplus = (rate - slow_kib_s).max(0.0) * slow_s;
    let stalled = rate * longest_ns as f64 / NS_PER_S + block;
    let block_ns = cost.usual_ns + block * deletions.rest_per_kib_ns();
    let held = held_kib(rate, block_kib, block_ns, [&pauses, &deletions.waits]);
    let buffer_kib = (held.max(stalled) + surplus).ceil() as u64;
    let answer = match buffer_kib {
        _ if profile.verified.as_ref().is_some_and(Verified::lost_data) => Answer::LosesData,
        _ if rate > most_kib_s => Answer::DoesNotHold,
        _ if rate > least_kib_s => Answer::Unknown,
        few if few <= 2 * block_kib => Answer::Holds,
        _ => Answer::HoldsWithBuffer,
    };
    Some(Verdict {
        answer,
        rate_kib_s,
        block_kib,
        usual_kib_s: kib_s(cost.mean_ns() + pauses_ns) as u64,
        least_kib_s: least_kib_s as u64,
        most_kib_s: most_kib_s as u64,
        may_be_faster: shortest.usual_ns < cost.usual_ns,
        longest_ns,
        buffer_kib,
    })
}
