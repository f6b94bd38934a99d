// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads all disks and recorders once per interval. It reports each change once, and continues when
//! a disk or recorder disappears. `steady watch` calls it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::interval::DiskInterval;
use crate::known::Known;
use crate::recorder::{Recorder, RecorderInterval, Status};
use crate::sample::Sample;
use crate::sysfs::Sysfs;
use crate::wear::{Wear, Wears};

/// The version of the JSON lines.
pub const SCHEMA: &str = "steadyio.watch/1";

/// The events of one interval.
#[derive(Debug, Clone, Serialize)]
pub struct Interval {
    pub schema: &'static str,
    pub tool: Tool,
    /// The end, on the wall clock.
    pub now_ns: u64,
    pub interval_ns: u64,
    pub devices: Vec<Device>,
    pub recorders: Vec<RecorderInterval>,
    /// The changes, in words.
    pub notices: Vec<String>,
    /// The CPU time of the watch since it began.
    pub cpu_ns: u64,
}

#[derive(Debug, Clone, Serialize)]
pub struct Tool {
    pub steady: &'static str,
}

#[derive(Debug, Clone, Serialize)]
pub struct Device {
    pub device: String,
    /// None if the disk is absent.
    pub scheduler: Option<String>,
    /// None if the disk is absent, or new.
    pub interval: Option<DiskInterval>,
    pub wear: Option<Wear>,
}

/// All counters at the end of an interval.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// The disks; None if absent.
    pub disks: Vec<(String, Option<Sample>, Option<Wear>)>,
    /// The recorders; None if a recorder does not answer.
    pub recorders: Vec<(String, Option<Status>)>,
    pub now_ns: u64,
}

#[derive(Debug)]
pub struct Look {
    pub interval: Interval,
    pub snapshot: Arc<Snapshot>,
}

#[derive(Debug)]
pub struct Watch {
    sysfs: Sysfs,
    /// The named disks; None: all under k2, including later ones.
    named: Option<Vec<String>>,
    known: BTreeMap<String, Known>,
    recorders: Vec<Recorder>,
    wears: Wears,
    looked: Option<Instant>,
    is_waiting: bool,
}

/// The CPU time of this process: all threads, in user mode and in the kernel.
pub fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl Watch {
    /// `named`: names of disks; if empty, all disks under k2.
    pub fn new(sysfs: Sysfs, named: Vec<String>, recorders: &[PathBuf]) -> Watch {
        Watch {
            named: (!named.is_empty()).then_some(named),
            known: BTreeMap::new(),
            recorders: recorders.iter().map(|socket| Recorder::new(socket)).collect(),
            wears: Wears::new(sysfs.clone()),
            sysfs,
            looked: None,
            is_waiting: false,
        }
    }

    /// The events since the last call. For the first call, only notices and the snapshot are valid.
    pub fn look(&mut self) -> Look {
        let now = Instant::now();
        let interval_ns = self.looked.replace(now).map_or(0, |before| {
            u64::try_from(now.duration_since(before).as_nanos()).unwrap_or(u64::MAX)
        });
        let mut notices = Vec::new();
        let mut snapshot = Snapshot { now_ns: wall_ns(), ..Snapshot::default() };
        let devices = self.look_at_disks(interval_ns, &mut snapshot, &mut notices);
        let recorders = self.recorders.iter_mut().map(|recorder| {
            let (status, interval) = recorder.look(&mut notices);
            snapshot.recorders.push((recorder.name(), status));
            interval
        });
        let recorders = recorders.collect();
        let interval = Interval {
            schema: SCHEMA,
            tool: Tool { steady: env!("CARGO_PKG_VERSION") },
            now_ns: snapshot.now_ns,
            interval_ns,
            devices,
            recorders,
            notices,
            cpu_ns: cpu_ns(),
        };
        Look { interval, snapshot: Arc::new(snapshot) }
    }

    fn look_at_disks(
        &mut self,
        interval_ns: u64,
        snapshot: &mut Snapshot,
        notices: &mut Vec<String>,
    ) -> Vec<Device> {
        let names = self.names(notices);
        let wears = self.wears.look(&names);
        let device = |name: String| {
            let now = Sample::read(&self.sysfs.disk(&name));
            let known = self.known.entry(name.clone()).or_default();
            let mut say = |what| notices.push(format!("{name}: {what}"));
            let wear = wears.get(&name).and_then(|found| known.wear(found, &mut say));
            let interval = known.compare(now.as_ref(), interval_ns, &mut say);
            let scheduler = now.as_ref().map(|sample| sample.scheduler.clone());
            snapshot.disks.push((name.clone(), now, wear.clone()));
            Device { device: name, scheduler, interval, wear }
        };
        names.into_iter().map(device).collect()
    }

    fn names(&mut self, notices: &mut Vec<String>) -> Vec<String> {
        if let Some(named) = &self.named {
            return named.clone();
        }
        for name in self.sysfs.disks_under("k2") {
            self.known.entry(name).or_default();
        }
        let is_waiting = self.known.is_empty();
        if is_waiting && !self.is_waiting {
            notices.push("no disk is under k2 yet; name disks to watch others".into());
        }
        self.is_waiting = is_waiting;
        self.known.keys().cloned().collect()
    }
}

fn wall_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
