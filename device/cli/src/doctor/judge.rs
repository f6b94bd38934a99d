// SPDX-License-Identifier: MIT OR Apache-2.0
//! Findings about layers and power states. Pure, like `findings`, which calls it.

use super::finding::{Finding, finding, word};
use super::system::System;
use crate::power::PowerState;

/// drivers/mmc/core/mmc_ops.c: the time limits of background operations and of a cache flush.
const BKOPS_LIMIT: &str = "120s";
const FLUSH_LIMIT: &str = "30s";
const US_PER_MS: u64 = 1_000;

pub fn all(system: &System) -> Vec<Finding> {
    let rules =
        [throttles, writeback_throttling, lanes, crypts, discards, manual_maintenance, cache_flush];
    let layers = rules.iter().filter_map(|rule| rule(system));
    system.power.iter().map(power).chain(layers).collect()
}

fn power(state: &PowerState) -> Finding {
    let overrun = state.wait_us.map(|us| format!("{}ms", us.div_ceil(US_PER_MS)));
    let advice = match state.id {
        "nvme-apst" => "or nvme_core.default_ps_max_latency_us=0 on the kernel's command line",
        _ => "it is on again after a reboot",
    };
    Finding {
        fix: Some(state.fix()),
        advice: Some(format!("{advice}; steady apply sets it permanently")),
        overrun,
        ..finding(state.id, state.text.clone())
    }
}

fn throttles(system: &System) -> Option<Finding> {
    let (file, line) = system.layers.throttles.first()?;
    let more = system.layers.throttles.len() - 1;
    let (device, _) = line.split_once(' ')?;
    let text = format!(
        "{} has \"{line}\" ({more} more such lines): I/Os of that group wait before the scheduler sees \
         them, whatever their priority",
        file.display()
    );
    Some(Finding {
        fix: Some(format!("echo '{device} 0' > {}", word(file))),
        advice: Some("and take the limit out of the program that sets it".into()),
        ..finding("blkio-throttle", text)
    })
}

/// block/blk-wbt.c: it throttles all writes except direct ones, which have REQ_SYNC and REQ_IDLE.
fn writeback_throttling(system: &System) -> Option<Finding> {
    let (disk, us) = (&system.disk.name, system.layers.wbt_us);
    (us > 0).then(|| Finding {
        fix: Some(format!("echo 0 > /sys/block/{disk}/queue/wbt_lat_usec")),
        advice: Some("steady apply sets it permanently".into()),
        ..finding(
            "writeback-throttling",
            format!(
                "writeback throttling of {disk} aims at {us} us: fsync and other writes through the page \
                 cache wait before the scheduler sees them, whatever their priority"
            ),
        )
    })
}

fn lanes(system: &System) -> Option<Finding> {
    let (partition, device) = system.layers.lanes.first()?;
    let disk = &system.disk.name;
    let text = format!(
        "{partition} is a lane of chario (/dev/{device}): real-time requests of {disk} wait for one of its \
         commands, which look-ahead does not cut, and steady bound counts it only if the task set says so"
    );
    Some(Finding {
        fix: Some(format!("echo {partition} > /sys/bus/mmc/drivers/chario/end_lane")),
        advice: Some(
            "or state it as [lane] of the task set, and make its commands shorter: command_kib and \
             bg_kib of the lane"
                .into(),
        ),
        ..finding("lane", text)
    })
}

/// From the sources of 6.1 and 6.12: drivers/md/dm-crypt.c has no priority in 6.1.
fn crypts(system: &System) -> Option<Finding> {
    let first = system.layers.crypts.first()?;
    (system.kernel < (6, 12)).then(|| Finding {
        advice: Some(
            "use Linux 6.12, where they keep it, or put what needs a bound on a partition without \
             them"
                .into(),
        ),
        ..finding(
            "crypt-priority",
            format!(
                "{first} is dm-crypt or dm-verity on {}: before Linux 6.12 its requests lose the I/O class, \
                 so a real-time request through it is background to k2",
                system.disk.name
            ),
        )
    })
}

fn discards(system: &System) -> Option<Finding> {
    let first = system.layers.discards.first()?;
    let place = first.display();
    Some(Finding {
        fix: Some(format!("mount -o remount,nodiscard {}", word(first))),
        advice: Some(
            "and take discard out of /etc/fstab; run fstrim when no real-time task is active"
                .into(),
        ),
        ..finding(
            "discard",
            format!(
                "{place} is mounted with discard: deleting a file sends discards, which k2 does not split"
            ),
        )
    })
}

/// drivers/mmc/core/mmc_ops.c, `mmc_run_bkops()`: it runs in the request path.
fn manual_maintenance(system: &System) -> Option<Finding> {
    system.layers.bkops_manual.filter(|manual| *manual).map(|_| Finding {
        advice: Some(
            "the bit cannot be cleared; use a card without it for what needs a bound, or leave the \
             card idle from time to time"
                .into(),
        ),
        overrun: Some(BKOPS_LIMIT.into()),
        ..finding(
            "bkops-manual",
            format!(
                "{} has manual background operations (BKOPS_EN): when the card asks for them, Linux runs \
                 them between two requests, for up to {BKOPS_LIMIT}",
                system.disk.name
            ),
        )
    })
}

/// The same file, `MMC_CACHE_FLUSH_TIMEOUT_MS`. Without flushes, no request waits for it.
fn cache_flush(system: &System) -> Option<Finding> {
    let (disk, layers) = (&system.disk, &system.layers);
    let first = layers.flushers.first()?.display();
    let more = layers.flushers.len() - 1;
    // Without FUA there is a finding already.
    (disk.is_card && disk.write_back && disk.fua).then(|| Finding {
        fix: Some(format!("mmc cache disable /dev/{}", disk.name)),
        advice: Some(
            "writes are slower without the cache, and it is back after each reset of the card; or \
             overwrite files with O_DSYNC instead of fsync"
                .into(),
        ),
        overrun: Some(FLUSH_LIMIT.into()),
        ..finding(
            "cache-flush",
            format!(
                "{} has a volatile cache, and the file system on {first} ({more} more) flushes it: Linux \
                 lets a flush take up to {FLUSH_LIMIT}, and a bound counts the time that steady probe \
                 measured",
                disk.name
            ),
        )
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::layers::Layers;
    use super::super::system::Disk;
    use super::*;

    fn with(kernel: (u32, u32), layers: Layers) -> Vec<Finding> {
        let disk = Disk { name: "mmcblk0".into(), is_card: true, ..Disk::default() };
        all(&System { kernel, disk, layers, ..System::default() })
    }

    fn only(layers: Layers) -> Finding {
        let mut found = with((6, 1), layers);
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    #[test]
    fn each_layer_has_the_command_that_takes_it_away() {
        let line = "179:0 1048576".to_string();
        let throttles = vec![("/sys/fs/cgroup/blkio/a/b".into(), line)];
        let lanes = vec![("mmcblk0p2".to_string(), "chardisk0".to_string())];
        for (layers, id, fix) in [
            (
                Layers { throttles, ..Layers::default() },
                "blkio-throttle",
                "echo '179:0 0' > /sys/fs/cgroup/blkio/a/b",
            ),
            (
                Layers { wbt_us: 75_000, ..Layers::default() },
                "writeback-throttling",
                "echo 0 > /sys/block/mmcblk0/queue/wbt_lat_usec",
            ),
            (
                Layers { lanes, ..Layers::default() },
                "lane",
                "echo mmcblk0p2 > /sys/bus/mmc/drivers/chario/end_lane",
            ),
            (
                Layers { discards: vec!["/data".into()], ..Layers::default() },
                "discard",
                "mount -o remount,nodiscard /data",
            ),
        ] {
            let found = only(layers);
            assert_eq!((found.id, found.fix.as_deref()), (id, Some(fix)));
        }
    }

    #[test]
    fn crypts_keep_the_class_from_6_12_on() {
        let layers = Layers { crypts: vec!["dm-0".into()], ..Layers::default() };
        assert_eq!(only(layers.clone()).id, "crypt-priority");
        assert_eq!(with((6, 12), layers), []);
    }

    #[test]
    fn maintenance_of_a_card_is_a_term_of_the_bound() {
        let found = only(Layers { bkops_manual: Some(true), ..Layers::default() });
        assert_eq!((found.id, found.overrun.as_deref()), ("bkops-manual", Some("120s")));
    }

    #[test]
    fn a_cache_that_a_file_system_flushes_is_a_term_of_the_bound() {
        let disk = Disk { is_card: true, write_back: true, fua: true, ..Disk::default() };
        let mut system = System { disk, ..System::default() };
        assert_eq!(all(&system), []);
        system.layers.flushers = vec!["/data".into()];
        let found = all(&system);
        assert_eq!((found[0].id, found[0].overrun.as_deref()), ("cache-flush", Some("30s")));
        system.disk.write_back = false;
        assert_eq!(all(&system), []);
    }
}
