// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts a snapshot to OpenMetrics. Counters have the kernel's values, so a reader sees when
//! they restarted. docs/reference/steady-watch.md lists all metrics. `server` and `steady watch`
//! call it.

mod families;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::{Registry, Unit};
use steadyio_core::blocked::Blocked;

use crate::declared::Task;
use crate::k2::{CLASSES, Counts, INFINITY_NS, K2, Latency, bounds_ns};
use crate::recorder::Status;
use crate::sample::Sample;
use crate::stat::{Requests, Stat};
use crate::watch::{Snapshot, cpu_ns};
use crate::wear::{Reserve, Wear};
use families::{Families, Labels};

/// The content type of [`openmetrics`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics as text.
pub fn openmetrics(snapshot: Arc<Snapshot>) -> String {
    let mut registry = Registry::with_prefix("steady");
    registry.register_collector(Box::new(Exposition(snapshot)));
    let mut text = String::new();
    // Writing into a string does not fail.
    let _ = encode(&mut text, &registry);
    text
}

#[derive(Debug)]
struct Exposition(Arc<Snapshot>);

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

impl Collector for Exposition {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let mut families = Families(encoder);
        watch(&mut families, &self.0)?;
        disks(&mut families, &self.0)?;
        classes(&mut families, &self.0)?;
        blocked(&mut families, &self.0)?;
        declared(&mut families, &self.0)?;
        wear(&mut families, &self.0)?;
        recorders(&mut families, &self.0)
    }
}

fn watch(families: &mut Families, snapshot: &Snapshot) -> fmt::Result {
    let version: Labels = vec![("version", env!("CARGO_PKG_VERSION").into())];
    families.gauge("watch_info", "Always 1", None, [(version, 1.0)])?;
    let used = [(vec![], seconds(cpu_ns()))];
    families.counter("watch_cpu", "CPU time of the watch itself", Some(Unit::Seconds), used)?;
    let when = [(vec![], seconds(snapshot.now_ns))];
    families.gauge("watch_time", "When it looked last, since 1970", Some(Unit::Seconds), when)
}

fn of_device(name: &str) -> Labels {
    vec![("device", name.into())]
}

fn with(mut labels: Labels, key: &'static str, value: &str) -> Labels {
    labels.push((key, value.into()));
    labels
}

impl Snapshot {
    fn present(&self) -> impl Iterator<Item = (&str, &Sample)> {
        self.disks.iter().filter_map(|(name, sample, _)| Some((name.as_str(), sample.as_ref()?)))
    }

    fn under_k2(&self) -> impl Iterator<Item = (&str, &K2)> {
        self.present().filter_map(|(name, sample)| Some((name, sample.k2.as_ref()?)))
    }

    /// Each class of each disk.
    fn latencies(&self) -> impl Iterator<Item = (Labels, &Latency)> {
        self.under_k2().flat_map(|(name, k2)| {
            let latencies = k2.latency.iter().flatten();
            CLASSES
                .iter()
                .zip(latencies)
                .map(move |(class, latency)| (with(of_device(name), "class", class), latency))
        })
    }
}

fn disks(families: &mut Families, snapshot: &Snapshot) -> fmt::Result {
    let there = snapshot
        .disks
        .iter()
        .map(|(name, sample, _)| (of_device(name), if sample.is_some() { 1.0 } else { 0.0 }));
    families.gauge("device_present", "Whether the disk is there", None, there)?;
    let schedulers = snapshot
        .present()
        .map(|(name, sample)| (with(of_device(name), "scheduler", &sample.scheduler), 1.0));
    families.gauge("device_scheduler", "Always 1", None, schedulers)?;
    let operations = |of: fn(Requests) -> f64| {
        snapshot.present().flat_map(move |(name, sample)| {
            let Stat { reads, writes, .. } = sample.stat;
            [("read", reads), ("write", writes)].map(|(operation, requests)| {
                (with(of_device(name), "operation", operation), of(requests))
            })
        })
    };
    let counts = operations(|requests| requests.count as f64);
    families.counter("device_requests", "Requests that completed", None, counts)?;
    let times = operations(|requests| requests.sum_ms as f64 / 1e3);
    let help = "Total time of completed requests";
    families.counter("device_requests_time", help, Some(Unit::Seconds), times)?;
    let stat = |of: fn(Stat) -> f64| {
        snapshot.present().map(move |(name, sample)| (of_device(name), of(sample.stat)))
    };
    let busy = stat(|stat| stat.busy_ms as f64 / 1e3);
    let help = "For how long the disk had requests";
    families.counter("device_busy", help, Some(Unit::Seconds), busy)?;
    let in_flight = stat(|stat| stat.in_flight as f64);
    families.gauge("device_in_flight", "Requests that the disk has", None, in_flight)
}

fn classes(families: &mut Families, snapshot: &Snapshot) -> fmt::Result {
    // Classes without requests would be most of the text.
    let used = snapshot.latencies().filter(|(_, latency)| latency.count > 0);
    let help = "From a request's tag to its completion, under k2";
    families.histogram(
        "request_latency",
        help,
        Unit::Seconds,
        used.map(|(labels, latency)| {
            (labels, seconds(latency.sum_ns), latency.count, spread(&latency.buckets))
        }),
    )?;
    let longest = snapshot
        .latencies()
        .filter(|(_, latency)| latency.count > 0)
        .map(|(labels, latency)| (labels, seconds(latency.max_ns)));
    let help = "The longest since k2 was chosen";
    families.gauge("request_latency_max", help, Some(Unit::Seconds), longest)?;
    let late = snapshot.latencies().map(|(labels, latency)| (labels, latency.late as f64));
    let help = "Requests that took longer than the deadline of their level";
    families.counter("late_requests", help, None, late)?;
    let deadlines = snapshot.under_k2().flat_map(|(name, k2)| {
        let set = CLASSES.iter().zip(&k2.deadline_us).filter(|(_, us)| **us > 0);
        set.map(move |(class, us)| (with(of_device(name), "class", class), seconds(us * 1_000)))
    });
    families.gauge("deadline", "Of a real-time level", Some(Unit::Seconds), deadlines)
}

/// All buckets, in seconds, so that each sample has the same ones.
fn spread(buckets: &[(u64, u64)]) -> Vec<(f64, u64)> {
    let mut left = buckets.iter().peekable();
    let mut up_to = |bound_ns: u64| {
        let mut sum = 0;
        while let Some((_, count)) = left.next_if(|(bucket, _)| *bucket <= bound_ns) {
            sum += count;
        }
        sum
    };
    let finite = bounds_ns().map(|bound_ns| (seconds(bound_ns), up_to(bound_ns)));
    let mut all: Vec<(f64, u64)> = finite.collect();
    all.push((f64::INFINITY, up_to(INFINITY_NS)));
    all
}

fn blocked(families: &mut Families, snapshot: &Snapshot) -> fmt::Result {
    let waits = |of: fn(&Blocked) -> f64| {
        snapshot
            .under_k2()
            .filter_map(move |(name, k2)| Some((of_device(name), of(k2.blocked.as_ref()?))))
    };
    let help = "Waits of real-time for background";
    families.counter("blocked", help, None, waits(|blocked| blocked.count as f64))?;
    let help = "Those longer than rt_block_us";
    families.counter("blocked_over", help, None, waits(|blocked| blocked.over as f64))?;
    let help = "Waits for background that rt_block_us does not cover";
    families.counter("blocked_unguarded", help, None, waits(|blocked| blocked.unguarded as f64))?;
    let longest = waits(|blocked| seconds(blocked.max_ns.max(blocked.unguarded_max_ns)));
    let help = "The longest wait since k2 was chosen";
    families.gauge("blocked_max", help, Some(Unit::Seconds), longest)?;
    let sums = snapshot
        .under_k2()
        .filter_map(|(name, k2)| Some((of_device(name), seconds(k2.blocked.as_ref()?.sum_ns?))));
    families.counter("blocked_time", "All waits together", Some(Unit::Seconds), sums)?;
    let excess = snapshot.under_k2().flat_map(|(name, k2)| {
        let of_cause = move |(cause, count): &(String, u64)| {
            (with(of_device(name), "cause", cause), *count as f64)
        };
        k2.excess.iter().map(of_cause)
    });
    let help = "Real-time requests that took longer than alone and rt_block_us";
    families.counter("excess", help, None, excess)?;
    let bounds = snapshot.under_k2().filter_map(|(name, k2)| {
        let us = k2.rt_block_us.filter(|us| *us > 0)?;
        Some((of_device(name), seconds(us * 1_000)))
    });
    let help = "rt_block_us: for how long background may block real-time";
    families.gauge("blocked_bound", help, Some(Unit::Seconds), bounds)?;
    let events = snapshot.under_k2().flat_map(|(name, k2)| {
        k2.counts.iter().flat_map(move |Counts { class, events }| {
            events.iter().map(move |(event, count)| {
                (with(with(of_device(name), "class", class), "event", event), *count as f64)
            })
        })
    });
    families.counter("k2_requests", "What became of requests", None, events)
}

/// Sums by level, because a second program may have declared a level, and then waits for it.
fn declared(families: &mut Families, snapshot: &Snapshot) -> fmt::Result {
    let by = |of: fn(&Task) -> Vec<(&'static str, String, f64)>| {
        snapshot.under_k2().flat_map(move |(name, k2)| {
            let mut sums = BTreeMap::new();
            for task in &k2.declared {
                for (key, value, number) in of(task) {
                    *sums.entry((task.level, key, value)).or_insert(0.0) += number;
                }
            }
            sums.into_iter().map(move |((level, key, value), sum)| {
                let labels = with(of_device(name), "level", &level.to_string());
                (if key.is_empty() { labels } else { with(labels, key, &value) }, sum)
            })
        })
    };
    let states = by(|task| vec![("state", task.state.clone(), 1.0)]);
    families.gauge("declared_tasks", "Declared tasks by state", None, states)?;
    let jobs = by(|task| vec![("", String::new(), task.jobs as f64)]);
    families.counter("declared_jobs", "Jobs of declared tasks that began", None, jobs)?;
    let faults = by(|task| {
        task.faults.iter().map(|(name, count)| ("fault", name.clone(), *count as f64)).collect()
    });
    let help = "What broke a declaration or the bound that it has";
    families.counter("declared_faults", help, None, faults)?;
    let longest = snapshot.under_k2().flat_map(|(name, k2)| {
        let mut longest = BTreeMap::new();
        for task in &k2.declared {
            let most = longest.entry(task.level).or_insert(0);
            *most = task.waited_ns_max.max(*most);
        }
        longest.into_iter().map(move |(level, ns)| {
            (with(of_device(name), "level", &level.to_string()), seconds(ns))
        })
    });
    let help = "The longest wait of a declared task for lower levels";
    families.gauge("declared_wait_max", help, Some(Unit::Seconds), longest)
}

fn ratio() -> Unit {
    Unit::Other("ratio".into())
}

fn wear(families: &mut Families, snapshot: &Snapshot) -> fmt::Result {
    let told = |of: fn(&Wear) -> Option<f64>| {
        snapshot
            .disks
            .iter()
            .filter_map(move |(name, _, wear)| Some((of_device(name), of(wear.as_ref()?)?)))
    };
    let help = "How much of the flash's life is used up";
    families.gauge("wear_used", help, Some(ratio()), told(|wear| wear.used_ratio))?;
    let help = "Blocks that replace worn ones: 1 normal, 2 few left, 3 nearly none left";
    families.gauge(
        "wear_reserve",
        help,
        None,
        told(|wear| {
            Some(match wear.reserve? {
                Reserve::Normal => 1.0,
                Reserve::Warning => 2.0,
                Reserve::Urgent => 3.0,
            })
        }),
    )?;
    let help = "How many of the spare blocks are left";
    families.gauge("wear_spare", help, Some(ratio()), told(|wear| wear.spare_ratio))?;
    let errors = told(|wear| Some(wear.media_errors? as f64));
    families.counter("media_errors", "Data that the drive could not correct", None, errors)
}

fn recorders(families: &mut Families, snapshot: &Snapshot) -> fmt::Result {
    let of_socket = |socket: &str| vec![("socket", socket.to_string())];
    let up = snapshot
        .recorders
        .iter()
        .map(|(socket, status)| (of_socket(socket), if status.is_some() { 1.0 } else { 0.0 }));
    families.gauge("recorder_up", "Whether the recorder answers", None, up)?;
    let told = |of: fn(&Status) -> u64| {
        snapshot.recorders.iter().filter_map(move |(socket, status)| {
            Some((of_socket(socket), of(status.as_ref()?) as f64))
        })
    };
    let help = "Records that producers handed over";
    families.counter("recorder_received_records", help, None, told(|status| status.received))?;
    let help = "Records that the recorder lost";
    families.counter("recorder_lost_records", help, None, told(|status| status.lost))?;
    let help = "Syncs that came later than the loss window allows";
    families.counter("recorder_late_syncs", help, None, told(|status| status.late_syncs))?;
    let help = "Writes and syncs that failed";
    families.counter("recorder_failures", help, None, told(|status| status.failures))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn task(state: &str, late: u64) -> Task {
        let faults = vec![("late".into(), late), ("over_k2".into(), 0)];
        let (level, jobs, waited_ns_max) = (3, 10 * late, 400_000 * late);
        Task { level, jobs, waited_ns_max, faults, state: state.into(), ..Task::default() }
    }

    fn snapshot(latency: Latency) -> Arc<Snapshot> {
        let mut all = vec![Latency::default(); CLASSES.len()];
        all[4] = latency;
        let blocked = Blocked { count: 3, ..Blocked::default() };
        let k2 = K2 {
            latency: Some(all),
            blocked: Some(blocked),
            deadline_us: vec![0, 0, 0, 0, 5_000],
            excess: vec![("early".into(), 3)],
            declared: vec![task("armed", 2), task("level-taken", 0)],
            ..K2::default()
        };
        let sample =
            Sample { scheduler: "k2".into(), stat: Stat::default(), k2: Some(k2), faults: vec![] };
        let disks = vec![("mmcblk0".into(), Some(sample), None), ("sda".into(), None, None)];
        Arc::new(Snapshot { disks, ..Snapshot::default() })
    }

    fn lines(text: &str, start: &str) -> Vec<String> {
        text.lines().filter(|line| line.starts_with(start)).map(String::from).collect()
    }

    #[test]
    fn a_used_class_has_all_buckets_and_they_add_up() {
        let buckets = vec![(4096, 2), (10_240, 1), (INFINITY_NS, 1)];
        let text = openmetrics(snapshot(Latency { count: 4, buckets, ..Latency::default() }));
        let buckets = lines(&text, "steady_request_latency_seconds_bucket");
        assert_eq!(buckets.len(), bounds_ns().count() + 1);
        let of = |bound: &str, count: u64| {
            let labels = format!("{{le=\"{bound}\",device=\"mmcblk0\",class=\"rt4\"}}");
            format!("steady_request_latency_seconds_bucket{labels} {count}")
        };
        assert_eq!(buckets[0], of("0.000004096", 2));
        assert_eq!(buckets[5], of("0.00001024", 3));
        assert_eq!(buckets[bounds_ns().count()], of("+Inf", 4));
    }

    #[test]
    fn an_excess_has_its_cause() {
        let text = openmetrics(snapshot(Latency::default()));
        let excess = lines(&text, "steady_excess_total");
        assert_eq!(excess, ["steady_excess_total{device=\"mmcblk0\",cause=\"early\"} 3.0"]);
    }

    #[test]
    fn declared_tasks_of_a_level_add_up() {
        let text = openmetrics(snapshot(Latency::default()));
        let level = "{device=\"mmcblk0\",level=\"3\"";
        for expected in [
            format!("steady_declared_tasks{level},state=\"armed\"}} 1.0"),
            format!("steady_declared_tasks{level},state=\"level-taken\"}} 1.0"),
            format!("steady_declared_jobs_total{level}}} 20.0"),
            format!("steady_declared_faults_total{level},fault=\"late\"}} 2.0"),
            format!("steady_declared_faults_total{level},fault=\"over_k2\"}} 0.0"),
            format!("steady_declared_wait_max_seconds{level}}} 0.0008"),
        ] {
            assert!(text.contains(&expected), "{expected}\n{text}");
        }
    }

    #[test]
    fn late_requests_are_there_before_the_first() {
        let text = openmetrics(snapshot(Latency::default()));
        let late = lines(&text, "steady_late_requests_total");
        assert_eq!(late.len(), CLASSES.len());
        assert!(late[4].ends_with("{device=\"mmcblk0\",class=\"rt4\"} 0.0"), "{}", late[4]);
    }

    #[test]
    fn a_disk_that_is_gone_is_shown_as_such() {
        let text = openmetrics(snapshot(Latency::default()));
        assert!(text.contains("\nsteady_device_present{device=\"sda\"} 0.0\n"), "{text}");
        assert!(!text.contains("steady_device_in_flight{device=\"sda\"}"));
    }

    #[test]
    fn deadlines_are_those_that_are_set() {
        let text = openmetrics(snapshot(Latency::default()));
        let expected = "steady_deadline_seconds{device=\"mmcblk0\",class=\"rt4\"} 0.005";
        assert_eq!(lines(&text, "steady_deadline_seconds{"), [expected]);
    }
}
