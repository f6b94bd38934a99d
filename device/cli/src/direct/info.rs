// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady direct info`: describes a device and its accessible regions.

use std::fmt::Write;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use steadyio_core::device::Device;
use steadyio_core::device_name::path_of;
use steadyio_direct::chardisk::{self, Info, Mode, Region, Stats};
use steadyio_direct::disk::{Disk, DiskKind};
use steadyio_direct::nvme::Namespace;

use crate::exit::{Failure, Status};
use crate::output::print;

/// Show the size, limits, regions and counters of a device
#[derive(clap::Args)]
pub struct Arguments {
    /// Block device, chardiskN or ngXnY, by name or node
    #[arg(value_name = "DEVICE")]
    device: PathBuf,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<Status, Failure> {
    let disk = open(&arguments.device)?;
    let (text, document) = match &disk.kind {
        DiskKind::Char(info) => {
            let stats = chardisk::stats(&disk.file).map_err(Failure::with(Status::Failed))?;
            (of_card(info, &stats), json!({ "chardisk": info, "stats": stats }))
        }
        DiskKind::Nvme(queue) => {
            let region = json!({ "name": queue.region().name(), "bytes": disk.bytes });
            let document = json!({ "nvme": queue.namespace(), "region": region });
            (of_namespace(queue.namespace(), &disk, queue.region().name()), document)
        }
        DiskKind::Block(device) => (of_block(device, &disk), of_block_json(device, &disk)),
    };
    print(&if arguments.json { format!("{document:#}\n") } else { text })?;
    Ok(Status::Done)
}

/// Opens the device. A chardisk shows the rights of this open file, so it is opened for writing if
/// the user may. A block device is not: udev would read it again, and the result is the same.
fn open(path: &Path) -> Result<Disk, Failure> {
    let node = path_of(path).unwrap_or_else(|_| path.into());
    let is_char = fs::metadata(node).is_ok_and(|meta| meta.file_type().is_char_device());
    let for_writing = is_char.then(|| super::open(path, true).ok()).flatten();
    for_writing.map_or_else(|| super::open(path, false), Ok)
}

fn of_card(info: &Info, stats: &Stats) -> String {
    let mode = match info.mode {
        Mode::Own => "the whole card".to_string(),
        Mode::Lane => format!("a partition, from byte {} of the card on", info.card_offset_bytes),
    };
    let mut text = format!(
        "card {}: {mode}, {} bytes in blocks of {}\n\
         commands: at most {} bytes of the real-time class, {} of others\n\
         registered buffers: at most {} of {} bytes\n",
        info.card,
        info.bytes,
        info.block_bytes,
        info.command_bytes_max,
        info.bg_command_bytes_max,
        info.buffers_max,
        info.buffer_bytes_max,
    );
    for Region { offset, bytes, read_only } in &info.regions {
        let access = if *read_only || !info.can_write { "read" } else { "read and write" };
        let _ = writeln!(text, "region {offset}+{bytes}: {access}");
    }
    let Stats { reads, read_commands, writes, write_commands, flushes, errors, .. } = stats;
    let _ = writeln!(
        text,
        "since it was taken: {reads} reads ({read_commands} commands), {writes} writes \
         ({write_commands}), {flushes} flushes, {} retries, {} resets, {errors} errors",
        stats.retries, stats.resets
    );
    text
}

fn of_namespace(found: &Namespace, disk: &Disk, region: &str) -> String {
    let cache = if found.has_cache { "a volatile write cache" } else { "no volatile write cache" };
    format!(
        "NVMe namespace {} as {}: {} bytes in blocks of {}; {cache}\n\
         commands: at most {} bytes, by io_uring, without the block layer and its schedulers\n\
         region {region}: {} bytes\n",
        found.namespace,
        found.name,
        found.bytes,
        found.block_bytes,
        found.command_bytes_max,
        disk.bytes
    )
}

fn of_block(device: &Device, disk: &Disk) -> String {
    format!(
        "block device {}: {} bytes in blocks of {}, through the block layer with O_DIRECT\n",
        device.name, disk.bytes, disk.block_bytes
    )
}

fn of_block_json(device: &Device, disk: &Disk) -> Value {
    let (bytes, block_bytes) = (disk.bytes, disk.block_bytes);
    json!({ "block": { "name": device.name, "bytes": bytes, "block_bytes": block_bytes } })
}
