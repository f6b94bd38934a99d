// SPDX-License-Identifier: MIT OR Apache-2.0
//! All that is counted of a disk, at one moment.

use crate::k2::K2;
use crate::stat::Stat;
use crate::sysfs::Disk;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    pub scheduler: String,
    pub stat: Stat,
    /// Only under k2.
    pub k2: Option<K2>,
    /// What could not be read or understood.
    pub faults: Vec<String>,
}

impl Sample {
    /// None if the disk is not there.
    pub fn read(disk: &Disk) -> Option<Sample> {
        let stat = disk.read("stat").ok()?;
        // A disk without a request queue of its own has no scheduler, and no such file.
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

    /// Whether k2 tells the latency of each class.
    pub fn has_latency(&self) -> bool {
        self.k2.as_ref().is_some_and(|k2| k2.latency.is_some())
    }
}
