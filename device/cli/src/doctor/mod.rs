// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady doctor`: finds settings that break a latency bound. It changes nothing, and needs no
//! root.
//!
//! [`system`] and [`layers`] read sysfs and /proc. [`mod@findings`], [`judge`] and [`declared`]
//! judge the facts. This file has arguments and output.

mod declared;
mod finding;
mod findings;
mod judge;
mod layers;
mod system;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde_json::json;
use steadyio_core::device::Device;
use steadyio_core::diagnostic;
use steadyio_core::kernel::Kernel;

use crate::exit::{Failure, Status};
use crate::output::print;
use finding::Finding;
use findings::findings;
use layers::{Devices, number_in};
use system::{Roots, System};

const SCHEMA: &str = "steadyio.doctor/1";

const HELP: &str = "Exit status: 0 no findings; 1 something breaks a bound; 2 usage error or \
unreadable device. The output also lists everything that could not be read.";

/// Check a system for settings that break a latency bound, and print the fixing command
///
/// Reads sysfs and /proc, and changes nothing. Unprivileged users see less; the output lists
/// everything that could not be read.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Arguments {
    /// Block device, for example mmcblk0
    #[arg(value_name = "DEVICE")]
    device: PathBuf,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<Status, Failure> {
    let (device, system) = look(&arguments.device).map_err(Failure::with(Status::Usage))?;
    let found = findings(&system);
    print(&if arguments.json {
        format!("{:#}\n", document(&device, &found, &system.unseen))
    } else {
        text(&device, &found, &system.unseen)
    })?;
    Ok(if found.is_empty() { Status::Done } else { Status::Failed })
}

fn look(node: &Path) -> anyhow::Result<(Device, System)> {
    let device = Device::open(node)?;
    if let Some(note) = device.disk_note() {
        diagnostic!("steady: {note}");
    }
    let roots = Roots {
        sys: "/sys".into(),
        proc: "/proc".into(),
        modules: Path::new("/lib/modules").join(Kernel::running().release),
    };
    let below = layers::disks_below(&roots.sys, &device.disk);
    ensure!(
        below.is_empty(),
        "{}: is on {}, and has no settings of its own: name what is below (steady doctor {})",
        device.disk,
        below.join(", "),
        below[0]
    );
    let numbers = device_numbers(&Path::new("/sys/block").join(&device.disk));
    let system = System::read(&roots, &device.disk, &numbers)
        .with_context(|| format!("{}: sysfs or /proc", device.disk))?;
    Ok((device, system))
}

/// The mount points of file systems on a disk that send discards of any length.
pub fn discarding(disk: &str) -> Vec<PathBuf> {
    let (sys, proc) = (Path::new("/sys"), Path::new("/proc"));
    let numbers = device_numbers(&sys.join("block").join(disk));
    layers::discards(sys, proc, disk, &Devices::of(sys, disk, &numbers))
}

/// The paths of an NVMe drive that passes its requests on to them.
pub fn paths(disk: &str) -> Vec<String> {
    system::nvme_paths(Path::new("/sys"), disk)
}

/// The device numbers of a disk and its partitions, as in stat(2).
fn device_numbers(disk: &Path) -> Vec<u64> {
    let entries = fs::read_dir(disk).into_iter().flatten().flatten().map(|entry| entry.path());
    let partitions = entries.filter(|dir| dir.join("partition").exists());
    partitions.chain([disk.to_path_buf()]).filter_map(|dir| number_in(&dir)).collect()
}

fn text(device: &Device, found: &[Finding], unseen: &[String]) -> String {
    let mut text = String::new();
    for finding in found {
        text += &format!("{}: {}\n", finding.id, finding.text);
        if let Some(fix) = &finding.fix {
            text += &format!("    {fix}\n");
        }
        if let Some(advice) = &finding.advice {
            text += &format!("    ({advice})\n");
        }
        if let Some(overrun) = &finding.overrun {
            text += &format!("    (until then: steady bound --overrun {overrun})\n");
        }
    }
    for what in unseen {
        text += &format!("not seen: {what}\n");
    }
    text + &match found.len() {
        0 => format!("{}: nothing found\n", device.name),
        1 => format!("{}: 1 finding\n", device.name),
        many => format!("{}: {many} findings\n", device.name),
    }
}

fn document(device: &Device, found: &[Finding], unseen: &[String]) -> serde_json::Value {
    json!({
        "schema": SCHEMA,
        "tool": { "steady": env!("CARGO_PKG_VERSION") },
        "device": device.name,
        "disk": device.disk,
        "findings": found,
        "unseen": unseen,
    })
}
