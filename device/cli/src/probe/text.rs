// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a profile says, for people.

use steadyio_probe::profile::{Cost, Profile, Seen};

use crate::table::align;

const HEAD: [&str; 9] = [
    "",
    "base us",
    "us/KiB",
    "jump us",
    "jitter us",
    "slow us",
    "samples",
    "longest us",
    "beyond us",
];
const WORDS: [usize; 1] = [0];

fn us(ns: u64) -> String {
    format!("{:.1}", ns as f64 / 1_000.0)
}

fn row(name: &str, cost: &Cost, seen: &Seen) -> [String; 9] {
    [
        name.into(),
        us(cost.base_ns),
        format!("{:.2}", cost.per_kib_ns as f64 / 1_000.0),
        us(cost.jump_ns),
        us(cost.jitter_ns),
        us(cost.slow_ns),
        seen.samples.to_string(),
        us(seen.longest_ns),
        us(seen.beyond_ns),
    ]
}

pub fn summary(profile: &Profile) -> String {
    let mut rows = vec![HEAD.map(String::from)];
    rows.push(row("read", &profile.read, &profile.seen.read));
    if let (Some(write), Some(seen)) = (&profile.write, &profile.seen.write) {
        rows.push(row("write", &write.cost, seen));
    }
    let mut text = format!("{}\n{}", profile.title, align(&rows, &WORDS));
    let mut say = |line: String| text += &(line + "\n");
    if let Some(slow) = &profile.slow {
        say(format!("slow for {} ms, every {} ms", slow.length_us / 1_000, slow.period_us / 1_000));
    }
    if let Some(write) = profile.write.as_ref().filter(|write| write.pause_ns > 0) {
        say(format!("a pause of {} us per {} KiB written", us(write.pause_ns), write.pause_kib));
    }
    match (&profile.queue, profile.card.units) {
        (Some(queue), Some(units)) => {
            say(format!("a queue of {}: commands overlap on {units} units", queue.depth));
        }
        _ => say("commands do not overlap".into()),
    }
    if let Some(cache) = &profile.cache {
        say(format!("a volatile cache of {} KiB", cache.kib));
    }
    if let Some(flush) = &profile.flush {
        say(format!("a flush takes {} us", us(flush.base_ns)));
    }
    say(format!(
        "with 95 % confidence at most {} of a million reads take longer than the longest, if they \
         are independent",
        profile.seen.read.longer_ppm_max
    ));
    let all = [("read", Some(&profile.seen.read)), ("write", profile.seen.write.as_ref())];
    for (name, seen) in all {
        let Some(most) = seen.and_then(|seen| seen.million_ns_max) else { continue };
        say(format!(
            "with 95 % confidence one {name} of a million takes {} us longer than base, KiB and jump, \
             or less, if they are independent",
            us(most)
        ));
    }
    text
}
