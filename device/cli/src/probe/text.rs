// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a profile says, for people.

use std::time::Duration;

use steadyio_probe::profile::{CONFIDENCE, Cost, Profile, Seen};

use super::blank_text::of_blank;
use super::{LONGEST, SHORTEST};
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
/// An event that n tries never met has, with 95 % confidence, a probability of at most 3 / n.
const RULE_OF_THREE: f64 = 3.0;
/// As many of an event make a model of it, with some to spare.
const EVENTS_WANTED: u64 = 10;

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
    let all = [("read", Some(&profile.seen.read)), ("write", profile.seen.write.as_ref())];
    for (name, seen) in all.into_iter().filter_map(|(name, seen)| Some((name, seen?))) {
        of_seen(name, seen).into_iter().for_each(&mut say);
    }
    for (name, line) in of_blank(profile) {
        say(format!("{name}: {line}"));
    }
    text
}

/// What the samples of one operation say, and what they do not.
pub fn of_seen(name: &str, seen: &Seen) -> Vec<String> {
    let mut lines = Vec::new();
    if seen.disturbed > 0 {
        let of = seen.disturbed + seen.samples;
        lines.push(format!("{} of {of} {name}s met other I/O, and are left out", seen.disturbed));
    }
    lines.extend(faster(name, seen));
    lines.push(match (seen.million_ns_max.zip(seen.longer_ppm_max), &seen.million_unknown) {
        (Some((most, longer_ppm)), _) => format!(
            "with 95 % confidence one usual {name} of a million takes {} us longer than most of its \
             size, or less, and at most {longer_ppm} of a million are longer than the longest",
            us(most)
        ),
        (None, Some(why)) => {
            format!("how long one usual {name} of a million takes is not known: {why}")
        }
        (None, None) => return lines,
    });
    lines.extend(pauses(seen));
    lines.push(rare(name, seen));
    lines
}

/// What the times of some sizes really are: less.
fn faster(name: &str, seen: &Seen) -> Option<String> {
    let (exact_kib, percent) = (seen.exact_kib?, seen.faster_percent?);
    let which = match exact_kib {
        0 => format!("the times of {name}s are on no line: some sizes take"),
        kib => format!("{name}s of more than {kib} KiB take"),
    };
    Some(format!(
        "{which} up to {percent} % less than these times say, which a bound takes: it is longer than \
         needed"
    ))
}

/// The longest of so many pauses is no bound.
fn pauses(seen: &Seen) -> Option<String> {
    let count = seen.pauses.filter(|count| *count > 0)?;
    let longer = 100.0 * (1.0 - (1.0 - CONFIDENCE).powf(1.0 / count as f64));
    Some(format!(
        "{count} pauses were met, the longest of {} ms: with 95 % confidence at most {longer:.0} % of \
         all are longer, if they are independent",
        seen.pause_ns_max.unwrap_or(0) / 1_000_000
    ))
}

/// Events that are too rare for this sample.
fn rare(name: &str, seen: &Seen) -> String {
    if seen.beyond_count == 0 {
        let apart = seen.seconds as f64 / RULE_OF_THREE;
        return format!(
            "a stall of {name}s that comes less often than every {apart:.0} s may be missing: \
             --duration measures for longer"
        );
    }
    let what = format!(
        "{} in {} s a {name} took up to {} ms longer than these times allow",
        times(seen.beyond_count),
        seen.seconds,
        seen.beyond_ns.div_ceil(1_000_000)
    );
    if seen.beyond_count >= EVENTS_WANTED {
        return format!("{what}, and a bound counts one of them");
    }
    let enough =
        Duration::from_secs(seen.seconds.saturating_mul(EVENTS_WANTED) / seen.beyond_count);
    let advice = if enough > LONGEST {
        "not even --duration 12h would meet enough of them".into()
    } else {
        format!("--duration {}s would meet enough of them", enough.max(SHORTEST).as_secs())
    };
    format!("the sample is too short: {what}; {advice} to tell how often they come")
}

fn times(count: u64) -> String {
    match count {
        1 => "once".into(),
        2 => "twice".into(),
        many => format!("{many} times"),
    }
}
