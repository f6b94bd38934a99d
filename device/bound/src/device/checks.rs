// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rejects files of devices whose values contradict each other. `Device::parse` calls it.

use super::blank::Verified;
use super::spec::{Cost, DEVICE_SCHEMAS, Device, Seen};
use super::times::Op;
use crate::fault::{Fault, fault};
use crate::tasks::check_name;

/// The kinds of cards, with the default first.
const KINDS: [&str; 2] = ["emmc", "scsi"];
/// The largest command of a probe.
const PROBED_KIB: u64 = 512;
/// The tolerance of a fit, in percent of the longest command and in ns.
const FIT_PERCENT: u64 = 5;
const FIT_NS: u64 = 1_000_000;
/// The number of flushes after a durable write, which earlier versions of the probe counted as a
/// part of it.
const FLUSHES_MAX: u64 = 3;

/// Checks the kind, before a card's tables are read: an SSD has others.
pub(super) fn kind(file: &toml::Table) -> Result<(), Fault> {
    let kind = file.get("kind").and_then(toml::Value::as_str).unwrap_or(KINDS[0]);
    if KINDS.contains(&kind) { Ok(()) } else { no_bound("kind", kind) }
}

pub(super) fn is_card(device: &Device) -> Result<(), Fault> {
    let disk = &device.probe.disk;
    if disk.starts_with("nvme") { no_bound("probe/disk", disk) } else { Ok(()) }
}

fn no_bound(place: &str, value: &str) -> Result<(), Fault> {
    let (key, value) = (place.replace('/', "."), value.escape_debug());
    fault(
        place,
        format!(
            "{key} = \"{value}\": no bound is known for an SSD: the times of its commands depend on \
             all earlier writes and on its garbage collection (only a card has a bound: kind = \
             \"emmc\" or \"scsi\")"
        ),
    )
}

pub(super) fn all(device: &Device) -> Result<(), Fault> {
    if !DEVICE_SCHEMAS.contains(&device.schema.as_str()) {
        let (found, [device, profile]) = (device.schema.escape_debug(), DEVICE_SCHEMAS);
        let text = format!("schema = \"{found}\": must be \"{device}\" or \"{profile}\"");
        return fault("schema", text);
    }
    check_name("name", "the device", &device.name)?;
    if !device.has_writes && !device.is_profile() {
        return fault("", "[write] is missing");
    }
    for key in ["pause_kib", "pause_ns"] {
        if device.read.pause_kib.max(device.read.pause_ns) > 0 {
            return fault(format!("read/{key}"), format!("read.{key}: only allowed in [write]"));
        }
    }
    if !device.fault.is_empty() {
        return fault("fault", "fault: a device that fails has no bound");
    }
    for (table, found) in [("stall", &device.stall), ("heat", &device.heat)] {
        if !found.is_empty() {
            return fault(table, format!("{table}: no bound is known for a device with [{table}]"));
        }
    }
    if device.is_profile() {
        measured("read", device.read.base_ns, &device.seen.read)?;
        if device.has_writes {
            measured("write", device.write.base_ns, &device.seen.write)?;
        }
    }
    cost("read", &device.read)?;
    cost("write", &device.write)?;
    slow(device)?;
    contents(device)?;
    if device.is_profile() { profile(device) } else { Ok(()) }
}

fn cost(table: &str, cost: &Cost) -> Result<(), Fault> {
    let Cost { jitter_ns, base_ns, .. } = cost;
    if jitter_ns <= base_ns {
        return Ok(());
    }
    let text = format!("{table}.jitter_ns = {jitter_ns}: must be at most base_ns = {base_ns}");
    fault(format!("{table}/jitter_ns"), text)
}

fn slow(device: &Device) -> Result<(), Fault> {
    let (length_us, period_us) = (device.slow.length_us, device.slow.period_us);
    let longest_us = period_us / 4 * 3;
    if length_us <= longest_us {
        return Ok(());
    }
    fault(
        "slow/length_us",
        format!(
            "slow.length_us = {length_us}: must be 0 to {longest_us}, three quarters of period_us = \
             {period_us}"
        ),
    )
}

pub(super) fn contents(device: &Device) -> Result<(), Fault> {
    device.verified.as_ref().map_or(Ok(()), Verified::check)
}

fn profile(device: &Device) -> Result<(), Fault> {
    let mut writes = device.write.pause_ns;
    if device.has_writes {
        pauses(device)?;
        writes = writes.max(device.seen.write.pause_ns_max.unwrap_or(0));
    }
    longest("read", &device.seen.read, device.command(Op::Read, PROBED_KIB).ns)?;
    if !device.has_writes {
        return Ok(());
    }
    let flushes_ns = if device.has_cache() { FLUSHES_MAX * device.flush.base_ns } else { 0 };
    let allowed_ns = device.command(Op::DurableWrite, PROBED_KIB).ns + writes + flushes_ns;
    longest("write", &device.seen.write, allowed_ns)
}

fn measured(table: &str, base_ns: u64, seen: &Seen) -> Result<(), Fault> {
    if base_ns == 0 {
        let text = format!("{table}.base_ns = 0: was not measured (probe the disk again)");
        return fault(format!("{table}/base_ns"), text);
    }
    if seen.samples == Some(0) {
        let text = format!("seen.{table}.samples = 0: must be at least 1");
        return fault(format!("seen/{table}/samples"), text);
    }
    Ok(())
}

fn pauses(device: &Device) -> Result<(), Fault> {
    let (kib, ns) = (device.write.pause_kib, device.write.pause_ns);
    if kib == 0 && ns == 0 {
        return Ok(());
    }
    if kib == 0 {
        return fault(
            "write/pause_kib",
            format!("write.pause_kib = 0: must be at least 1, as pause_ns = {ns}"),
        );
    }
    let seen = &device.seen.write;
    let (Some(kib_min), Some(ns_max)) = (seen.pause_kib_min, seen.pause_ns_max) else {
        return fault(
            "write/pause_kib",
            "write.pause_kib, write.pause_ns: are usual values, and seen.write.pause_kib_min and \
             pause_ns_max are missing (probe again with this version of steady)",
        );
    };
    if kib_min > kib {
        let text = format!("seen.write.pause_kib_min = {kib_min}: must be 0 to pause_kib = {kib}");
        return fault("seen/write/pause_kib_min", text);
    }
    if ns_max < ns {
        let text = format!("seen.write.pause_ns_max = {ns_max}: must be at least pause_ns = {ns}");
        return fault("seen/write/pause_ns_max", text);
    }
    Ok(())
}

/// Checks that the longest command is at most what the model and `beyond_ns` allow.
fn longest(table: &str, seen: &Seen, allowed_ns: u64) -> Result<(), Fault> {
    let (longest_ns, beyond_ns) = (seen.longest_ns, seen.beyond_ns);
    let most_ns = allowed_ns + allowed_ns / 100 * FIT_PERCENT + FIT_NS + beyond_ns;
    if longest_ns <= most_ns {
        return Ok(());
    }
    fault(
        format!("seen/{table}/longest_ns"),
        format!(
            "seen.{table}.longest_ns = {longest_ns}: must be at most {most_ns}, what [{table}] and \
             beyond_ns = {beyond_ns} allow"
        ),
    )
}
