// SPDX-License-Identifier: MIT OR Apache-2.0
//! All counters of a disk, at one moment. `watch` takes samples.

use crate::k2::K2;
use crate::stat::Stat;
use crate::sysfs::Disk;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    pub scheduler: String,
    pub stat: Stat,
    /// k2's counters, if k2 is the scheduler.
    pub k2: Option<K2>,
    /// The errors of reading or parsing.
    pub faults: Vec<String>,
}

impl Sample {
    /// Takes a sample; None if the disk is absent.
    pub fn read(disk: &Disk) -> Option<Sample> {
        let stat = disk.read("stat").ok()?;
        // A disk without a separate request queue has no scheduler, and no such file.
        let scheduler = disk.scheduler().unwrap_or_else(|_| "none".into());
        let mut faults = Vec::new();
        let stat = Stat::parse(&stat).unwrap_or_else(|| {
            faults.push(format!("stat: cannot be understood: {:?}", stat.trim()));
            Stat::default()
        });
        let k2 = (scheduler == "k2").then(|| {
            let (k2, unclear) = K2::read(disk);
            faults.extend(unclear);
            k2
        });
        disk.is_there().then_some(Sample { scheduler, stat, k2, faults })
    }

    /// Whether k2 has the latency of each class.
    pub fn has_latency(&self) -> bool {
        self.k2.as_ref().is_some_and(|k2| k2.latency.is_some())
    }
}
