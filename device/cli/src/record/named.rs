// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts errors of the recorder's configuration, which name fields, to errors that name command
//! line options.

use anyhow::{anyhow, ensure};
use rustix::thread::{CpuSet, sched_getaffinity};
use steadyio_recorder::config::ConfigError;

/// Names the option of a wrong value. `keep` is the option that sets the number of segments.
/// `declared`: a stream declares its topics, so the longest record is not --size.
pub fn option(error: ConfigError, keep: &str, declared: bool) -> anyhow::Error {
    let ConfigError { key, value, reason } = error;
    let names = [("unit_bytes", "--unit"), ("longest_record_bytes", "--record-max")];
    let reason = names.iter().fold(reason, |text, (name, option)| text.replace(name, option));
    let option = match key.as_str() {
        "unit_bytes" => "--unit",
        "longest_record_bytes" => "--record-max",
        "writer.ram.bytes" => "--ram",
        "late.channels" => "--late-topics",
        "late.definition_bytes" => "--late-definitions",
        "segment_bytes" => "--segment-size",
        "length of profile" => return anyhow!("--profile of {value} bytes: {reason}"),
        "loss_window (ms)" => return anyhow!("--loss-window {value}ms: {reason} ms"),
        "retention (time)" => "--keep-time",
        "memory to lock" => {
            return anyhow!("cannot lock {value} bytes of memory: {reason} (--no-lock)");
        }
        "number of segments" if keep == "--segments" => keep,
        "number of segments" => {
            return anyhow!("{keep}: comes to {value} segments of --segment-size: {reason}");
        }
        key if key.ends_with(": ring_bytes") => "--ring",
        key if key.ends_with(": record_bytes_max") && !declared => "--size",
        _ => return anyhow!("{key} = {value}: {reason}"),
    };
    anyhow!("{option} {value}: {reason}")
}

/// Checks the CPU early. The recorder would find an unusable CPU only after making the pool.
pub fn cpu(option: &str, cpu: Option<usize>) -> anyhow::Result<()> {
    let Some(cpu) = cpu else { return Ok(()) };
    let usable = sched_getaffinity(None)?;
    let numbers = (0..CpuSet::MAX_CPU).filter(|&cpu| usable.is_set(cpu));
    let numbers: Vec<String> = numbers.map(|cpu| cpu.to_string()).collect();
    let is_usable = cpu < CpuSet::MAX_CPU && usable.is_set(cpu);
    ensure!(is_usable, "{option} {cpu}: must be one of {}", numbers.join(", "));
    Ok(())
}
