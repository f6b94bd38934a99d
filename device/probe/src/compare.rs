// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two profiles of the same card: what has changed by more than a probe is off by.

use serde::Serialize;

use crate::profile::{Profile, Seen};

/// A probe finds times within this of what they are, as its tests in the lab demand,
const TIME_SHARE: f64 = 0.05;
const TIME_NS: f64 = 4_000.0;
/// and pauses and slow states, which it counts, within this.
const EVENT_SHARE: f64 = 0.1;
/// The rarest of the usual times.
const JITTER_SHARE: f64 = 0.5;
const TABLES: [&str; 8] = ["card", "queue", "read", "write", "cache", "flush", "erase", "slow"];

/// A time of both profiles; `None`: the profile lacks it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    pub key: String,
    pub before: Option<u64>,
    pub after: Option<u64>,
    /// By more than a probe is off by.
    pub differs: bool,
}

/// All times, and in words what makes them hard to compare.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    pub rows: Vec<Row>,
    pub notices: Vec<String>,
}

impl Comparison {
    pub fn differs(&self) -> bool {
        self.rows.iter().any(|row| row.differs)
    }
}

pub fn compare(before: &Profile, after: &Profile) -> Comparison {
    let (one, other) = (numbers(before), numbers(after));
    let value = |all: &[(String, u64)], key: &String| {
        all.iter().find(|(name, _)| name == key).map(|(_, value)| *value)
    };
    let mut keys: Vec<String> = one.iter().map(|(key, _)| key.clone()).collect();
    keys.extend(other.iter().map(|(key, _)| key.clone()).filter(|key| value(&one, key).is_none()));
    let row = |key: String| {
        let (before, after) = (value(&one, &key), value(&other, &key));
        let differs = is_apart(&key, before.unwrap_or(0), after.unwrap_or(0));
        Row { key, before, after, differs }
    };
    Comparison { rows: keys.into_iter().map(row).collect(), notices: notices(before, after) }
}

/// Of the tables that say how long commands take, in the file's order.
fn numbers(profile: &Profile) -> Vec<(String, u64)> {
    let Ok(all) = toml::Table::try_from(profile) else { return Vec::new() };
    let mut found = Vec::new();
    for name in TABLES {
        let Some(table) = all.get(name).and_then(toml::Value::as_table) else { continue };
        for (key, value) in table {
            let number = value.as_integer().and_then(|number| u64::try_from(number).ok());
            found.extend(number.map(|number| (format!("{name}.{key}"), number)));
        }
    }
    found
}

fn is_apart(key: &str, before: u64, after: u64) -> bool {
    let share = match key.split_once('.') {
        Some((_, "jitter_ns")) => JITTER_SHARE,
        Some(("slow", _)) => EVENT_SHARE,
        Some((_, name)) if name.starts_with("pause_") => EVENT_SHARE,
        _ => TIME_SHARE,
    };
    let is_whole_time = key.ends_with("_ns") && !key.ends_with("per_kib_ns");
    let least = if is_whole_time { TIME_NS } else { 0.0 };
    before.abs_diff(after) as f64 > share * before.max(after) as f64 + least
}

fn notices(before: &Profile, after: &Profile) -> Vec<String> {
    let mut found = Vec::new();
    let numbers = (&before.probe.serial_sha256, &after.probe.serial_sha256);
    if let (Some(one), Some(other)) = numbers {
        if one != other {
            found.push("the serial numbers differ: two cards were measured".into());
        }
    }
    if before.card.product != after.card.product {
        let (one, other) = (&before.card.product, &after.card.product);
        found.push(format!("the products differ: {one} and {other}"));
    }
    let (one, other) = (before.card.capacity_mib, after.card.capacity_mib);
    if one != other {
        found.push(format!("the sizes differ: {one} and {other} MiB"));
    }
    let percent = |profile: &Profile| profile.full.as_ref().map(|full| full.percent);
    if percent(before) != percent(after) {
        found.push(
            "only one was measured with --blank, full: the times of writes may differ".into(),
        );
    }
    found.extend(seen("reads", Some(&before.seen.read), Some(&after.seen.read)));
    found.extend(seen("writes", before.seen.write.as_ref(), after.seen.write.as_ref()));
    found
}

/// Something that one met and the other did not may be missing because the other was short.
fn seen(name: &str, before: Option<&Seen>, after: Option<&Seen>) -> Option<String> {
    let (before, after) = (before?, after?);
    let met = |seen: &Seen| seen.beyond_count + seen.pauses.unwrap_or(0);
    let says = |which: &str, with: &Seen, other: &str, without: &Seen| {
        format!(
            "{name}: {which} met {} long commands in {} s, {other} none in {} s: a longer probe \
             tells whether the card has changed",
            met(with),
            with.seconds,
            without.seconds
        )
    };
    match (met(before), met(after)) {
        (0, 1..) => Some(says("the second", after, "the first", before)),
        (1.., 0) => Some(says("the first", before, "the second", after)),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn profile(change: impl Fn(&mut toml::Table)) -> Profile {
        let mut table: toml::Table = include_str!("../tests/profile.toml").parse().unwrap();
        change(&mut table);
        Profile::parse(&table.to_string()).unwrap()
    }

    fn set(table: &mut toml::Table, name: &str, key: &str, value: i64) {
        let inner = table.get_mut(name).unwrap().as_table_mut().unwrap();
        inner.insert(key.into(), value.into());
    }

    fn differing(after: &Profile) -> Vec<String> {
        let rows = compare(&profile(|_| {}), after).rows;
        rows.into_iter().filter(|row| row.differs).map(|row| row.key).collect()
    }

    #[test]
    fn what_a_probe_is_off_by_is_no_difference() {
        let near = profile(|table| {
            set(table, "read", "base_ns", 118_000);
            set(table, "write", "pause_ns", 2_450_000);
        });
        assert_eq!(differing(&near), [""; 0]);
    }

    #[test]
    fn a_time_that_has_changed_is_named_and_so_is_one_that_is_gone() {
        let aged = profile(|table| {
            set(table, "read", "per_kib_ns", 12_000);
            set(table, "write", "pause_ns", 4_000_000);
            table.remove("slow");
        });
        let keys = ["read.per_kib_ns", "write.pause_ns", "slow.period_us", "slow.length_us"];
        let mut found = differing(&aged);
        found.sort();
        let mut wanted = keys.map(String::from).to_vec();
        wanted.sort();
        assert_eq!(found, wanted);
    }

    #[test]
    fn another_card_and_a_pause_that_only_one_met_are_told() {
        let other = profile(|table| {
            set(table, "card", "capacity_mib", 1);
            let seen = table["seen"].as_table_mut().unwrap();
            seen["read"].as_table_mut().unwrap().insert("beyond_count".into(), 2.into());
        });
        let full: toml::Table = "percent = 80".parse().unwrap();
        let blank = profile(|table| drop(table.insert("full".into(), full.clone().into())));
        let notices = compare(&profile(|_| {}), &blank).notices;
        assert!(notices[0].starts_with("only one was measured with --blank"), "{notices:?}");
        let notices = compare(&profile(|_| {}), &other).notices;
        assert_eq!(notices[0], "the sizes differ: 61035 and 1 MiB");
        assert!(
            notices[1].starts_with("reads: the second met 2 long commands in 20 s"),
            "{notices:?}"
        );
    }
}
