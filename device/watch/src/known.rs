// SPDX-License-Identifier: MIT OR Apache-2.0
//! The last known state of a disk, so that each change is reported once. `watch` uses it.

use crate::interval::DiskInterval;
use crate::sample::Sample;
use crate::wear::{Unread, Wear};

#[derive(Debug, Default)]
pub struct Known {
    before: Option<Sample>,
    is_gone: bool,
    wear_unread: Option<Unread>,
}

impl Known {
    /// The disk's wear, if known; otherwise `say` receives the reason.
    pub fn wear(
        &mut self,
        found: &Result<Wear, Unread>,
        say: &mut impl FnMut(String),
    ) -> Option<Wear> {
        let unread = found.as_ref().err().cloned();
        if let Some(why) = unread.as_ref().filter(|_| unread != self.wear_unread) {
            say(format!("wear is not shown: {why}"));
        }
        self.wear_unread = unread;
        found.as_ref().ok().cloned()
    }

    /// Compares with the last state. None if the disk is absent, or new.
    pub fn compare(
        &mut self,
        now: Option<&Sample>,
        interval_ns: u64,
        say: &mut impl FnMut(String),
    ) -> Option<DiskInterval> {
        let Some(now) = now else {
            if !self.is_gone {
                say("is not there; it is watched again when it comes back".into());
            }
            (self.before, self.is_gone) = (None, true);
            return None;
        };
        let is_back = std::mem::take(&mut self.is_gone);
        let before = self.before.replace(now.clone());
        if is_back {
            say(format!("is back, under {}", now.scheduler));
        }
        tell_changes(before.as_ref(), now, say);
        if before.is_none() && !is_back {
            return None;
        }
        let interval = DiskInterval::between(before.as_ref(), now, interval_ns);
        if interval.is_restarted {
            say("k2 was chosen again: its counters restarted at 0".into());
        }
        Some(interval)
    }
}

fn tell_changes(before: Option<&Sample>, now: &Sample, say: &mut impl FnMut(String)) {
    if let Some(before) = before.filter(|before| before.scheduler != now.scheduler) {
        say(format!("is under {} now, no longer {}", now.scheduler, before.scheduler));
    }
    let lacked = before.and_then(lacking);
    if let Some(lacks) = lacking(now).filter(|lacks| lacked.as_ref() != Some(lacks)) {
        say(lacks);
    }
    let told = before.map(|before| before.faults.as_slice()).unwrap_or_default();
    now.faults.iter().filter(|fault| !told.contains(fault)).cloned().for_each(say);
}

/// The values that are missing for a disk, and the condition under which they exist.
fn lacking(sample: &Sample) -> Option<String> {
    let shown = "only counts and mean times of reads and writes are shown";
    match &sample.k2 {
        None => Some(format!(
            "{} counts no latencies: {shown}; k2 adds p50, p99 and longest latency per class and \
             real-time level, late requests, and how long real-time was blocked",
            sample.scheduler
        )),
        Some(_) if !sample.has_latency() => Some(format!(
            "this k2 counts no latencies: {shown}, and how long real-time was blocked; a newer k2 \
             adds latencies per class and real-time level, and late requests"
        )),
        Some(_) => None,
    }
}
