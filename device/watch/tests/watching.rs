// SPDX-License-Identifier: MIT OR Apache-2.0
//! Disks that come, go and change while they are watched, in a folder made like sysfs.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use steadyio_testing::Sysfs as Folder;
use steadyio_watch::sysfs::Sysfs;
use steadyio_watch::watch::{Device, Interval, Watch};

fn under(scheduler: &str) -> Folder {
    let folder = Folder::new();
    folder.add("mmcblk0", scheduler);
    folder
}

fn watch(folder: &Folder, names: &[&str]) -> Watch {
    let names = names.iter().map(|name| name.to_string()).collect();
    Watch::new(Sysfs::new(folder.root()), names, &[])
}

fn only(interval: Interval) -> Device {
    assert_eq!(interval.devices.len(), 1);
    interval.devices.into_iter().next().unwrap()
}

fn complete(folder: &Folder, count: u64) {
    let head = format!("count {count} sum_ns 0 max_ns 5000 late 0");
    folder.set_latency("mmcblk0", "rt0", &head, &format!("5120:{count}"));
}

fn rt0_count(device: &Device) -> u64 {
    let classes = device.interval.as_ref().unwrap().classes.as_ref().unwrap();
    classes.first().map_or(0, |class| class.count)
}

#[test]
fn the_first_look_has_no_interval() {
    let folder = under("k2");
    complete(&folder, 100);
    let mut watch = watch(&folder, &["mmcblk0"]);
    let first = watch.look().interval;
    assert_eq!(first.notices, [""; 0]);
    assert_eq!(only(first).interval, None);
    complete(&folder, 103);
    assert_eq!(rt0_count(&only(watch.look().interval)), 3);
}

#[test]
fn a_disk_that_goes_away_is_told_once_and_watched_when_it_is_back() {
    let folder = under("k2");
    complete(&folder, 100);
    let mut watch = watch(&folder, &["mmcblk0"]);
    watch.look();
    folder.remove("mmcblk0");
    let gone = watch.look().interval;
    assert!(gone.notices[0].starts_with("mmcblk0: is not there"), "{:?}", gone.notices);
    assert_eq!(only(gone).scheduler, None);
    assert_eq!(watch.look().interval.notices, [""; 0]);
    folder.add("mmcblk0", "k2");
    complete(&folder, 7);
    let back = watch.look().interval;
    assert_eq!(back.notices, ["mmcblk0: is back, under k2"]);
    assert_eq!(rt0_count(&only(back)), 7, "all of it happened since");
}

#[test]
fn another_scheduler_is_told_once_with_what_it_lacks() {
    let folder = under("k2");
    let mut watch = watch(&folder, &["mmcblk0"]);
    watch.look();
    folder.choose("mmcblk0", "mq-deadline");
    let notices = watch.look().interval.notices;
    assert_eq!(notices[0], "mmcblk0: is under mq-deadline now, no longer k2");
    assert!(notices[1].contains("k2 adds p50, p99 and longest latency"), "{notices:?}");
    assert_eq!(watch.look().interval.notices, [""; 0]);
    folder.choose("mmcblk0", "k2");
    complete(&folder, 2);
    let again = watch.look().interval;
    assert_eq!(again.notices, ["mmcblk0: is under k2 now, no longer mq-deadline"]);
    assert_eq!(rt0_count(&only(again)), 2);
}

#[test]
fn k2_chosen_anew_between_two_looks_is_told() {
    let folder = under("k2");
    complete(&folder, 100);
    let mut watch = watch(&folder, &["mmcblk0"]);
    watch.look();
    complete(&folder, 5);
    let interval = watch.look().interval;
    assert!(interval.notices[0].contains("restarted at 0"), "{:?}", interval.notices);
    assert_eq!(rt0_count(&only(interval)), 5);
}

#[test]
fn without_names_all_disks_under_k2_are_watched_also_later_ones() {
    let folder = under("none");
    let mut watch = watch(&folder, &[]);
    let notices = watch.look().interval.notices;
    assert!(notices[0].starts_with("no disk is under k2 yet"), "{notices:?}");
    folder.choose("mmcblk0", "k2");
    assert_eq!(only(watch.look().interval).device, "mmcblk0");
    folder.choose("mmcblk0", "none");
    assert_eq!(only(watch.look().interval).scheduler.unwrap(), "none");
}

#[test]
fn an_older_k2_shows_waits_only() {
    let folder = under("k2");
    fs::remove_dir_all(folder.root().join("block/mmcblk0/queue/iosched")).unwrap();
    let waits = |count| format!("count {count} over 0 max_ns 9 unguarded 0 max_ns 0\n");
    folder.set("mmcblk0", "queue/iosched/rt_blocked", &waits(1));
    let mut watch = watch(&folder, &["mmcblk0"]);
    assert!(watch.look().interval.notices[0].contains("a newer k2 adds latencies"));
    folder.set("mmcblk0", "queue/iosched/rt_blocked", &waits(4));
    let interval = only(watch.look().interval).interval.unwrap();
    assert_eq!((interval.classes, interval.blocked.unwrap().count), (None, 3));
}

#[test]
fn a_file_that_cannot_be_understood_is_told_once() {
    let folder = under("k2");
    let mut watch = watch(&folder, &["mmcblk0"]);
    watch.look();
    folder.set("mmcblk0", "queue/iosched/rt_blocked", "count many\n");
    let notices = watch.look().interval.notices;
    let says = "mmcblk0: iosched/rt_blocked: cannot be understood: \"count many\" has no count";
    assert!(notices[0].starts_with(says), "{notices:?}");
    assert_eq!(watch.look().interval.notices, [""; 0]);
}

#[test]
fn a_partition_or_a_link_stands_for_its_disk() {
    let folder = under("k2");
    let block = folder.root().join("block");
    folder.set("mmcblk0", "mmcblk0p1/partition", "1\n");
    fs::create_dir_all(folder.root().join("class/block")).unwrap();
    symlink(block.join("mmcblk0/mmcblk0p1"), folder.root().join("class/block/mmcblk0p1")).unwrap();
    let sysfs = Sysfs::new(folder.root());
    for device in ["mmcblk0", "/dev/mmcblk0", "mmcblk0p1", "/dev/mmcblk0p1"] {
        assert_eq!(sysfs.find(Path::new(device)).unwrap().disk, "mmcblk0", "{device}");
    }
    let link = folder.root().join("by-id");
    symlink(block.join("mmcblk0"), &link).unwrap();
    assert_eq!(sysfs.find(&link).unwrap().disk, "mmcblk0");
}

#[test]
fn what_is_no_disk_is_named() {
    let folder = under("k2");
    for device in ["sda", "", "/", "/dev/null", ".."] {
        let error = Sysfs::new(folder.root()).find(Path::new(device)).unwrap_err().to_string();
        assert!(error.contains("block device"), "{device}: {error}");
    }
}

#[test]
fn a_recorder_that_does_not_answer_is_told_once() {
    let folder = under("k2");
    let socket = folder.root().join("control");
    let mut watch = Watch::new(
        Sysfs::new(folder.root()),
        vec!["mmcblk0".into()],
        std::slice::from_ref(&socket),
    );
    let interval = watch.look().interval;
    assert!(interval.notices[0].starts_with(socket.to_str().unwrap()), "{:?}", interval.notices);
    assert_eq!(interval.recorders[0].state, None);
    assert_eq!(watch.look().interval.notices, [""; 0]);
}
