// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady direct`: accesses storage without the page cache, through a card's character device or
//! O_DIRECT.
//!
//! The work is in `steadyio_direct`. This has arguments, checks for data that would be lost, and
//! output.

mod bench;
mod bind;
mod buffer;
mod copy;
mod info;

use std::io;
use std::path::Path;

use anyhow::{anyhow, bail, ensure};
use clap::Subcommand;
use steadyio_bench::run::safety::{self, Claim};
use steadyio_core::device_name::path_of;
use steadyio_core::interrupt::Interrupt;
use steadyio_direct::chardisk::Region;
use steadyio_direct::disk::{Disk, DiskError, DiskKind};
use steadyio_direct::nvme::region::{self, Part};

use crate::exit::{Failure, Status};

const HELP: &str = "Exit status: 0 success; 1 failure; 2 usage error or unusable device (nothing \
was changed); 3 memory rejected for every use (buffer); 130 interrupted.";

/// Read, write and measure a device without the page cache; bind cards to chario
///
/// DEVICE is /dev/chardiskN of the module chario, /dev/ngXnY of an NVMe drive, or a block device,
/// which is opened with O_DIRECT. /dev/ngXnY@p2 is a partition, and /dev/ngXnY@1M+64M or @0+1Mro a
/// range.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Info(info::Arguments),
    Read(copy::ReadArguments),
    Write(copy::WriteArguments),
    Bench(bench::Arguments),
    Buffer(buffer::Arguments),
    Bind(bind::BindArguments),
    Unbind(bind::UnbindArguments),
}

pub fn run(arguments: &Arguments) -> Result<Status, Failure> {
    match &arguments.command {
        Command::Info(arguments) => info::run(arguments),
        Command::Read(arguments) => copy::read(arguments),
        Command::Write(arguments) => copy::write(arguments),
        Command::Bench(arguments) => bench::run(arguments),
        Command::Buffer(arguments) => buffer::run(arguments),
        Command::Bind(arguments) => bind::bind(arguments),
        Command::Unbind(arguments) => bind::unbind(arguments),
    }
}

fn open(path: &Path, writes: bool) -> Result<Disk, Failure> {
    Disk::open(path, writes).map_err(|error: DiskError| Failure::with(Status::Usage)(error))
}

/// Checks that a device may be overwritten. A block device is claimed meanwhile. chario's card
/// cannot be mounted, but may hold any data, so it always needs consent.
fn allow_writes(disk: &Disk, path: &Path, consent: Option<&str>) -> Result<Option<Claim>, Failure> {
    match &disk.kind {
        DiskKind::Block(device) => {
            safety::allow_writes(device, consent).map(Some).map_err(Failure::with(Status::Usage))
        }
        DiskKind::Nvme(queue) => {
            // Mounts and partitions are on its block device.
            if let Some(device) = queue.region().device() {
                let claimed = safety::allow_writes(device, consent);
                return claimed.map(Some).map_err(Failure::with(Status::Usage));
            }
            consented(path, consent).map(|()| None)
        }
        DiskKind::Char(_) => consented(path, consent).map(|()| None),
    }
}

/// Checks the consent for a device that cannot be examined.
fn consented(path: &Path, consent: Option<&str>) -> Result<(), Failure> {
    let name = kernel_name(path);
    let error = match consent {
        Some(given) if kernel_name(Path::new(given)) == name => return Ok(()),
        Some(given) => {
            anyhow!("--destroy-data {given}: must name the device that is written to, {name}")
        }
        None => anyhow!(
            "{}: its contents would be overwritten (to allow this, add --destroy-data {name})",
            path.display()
        ),
    };
    Err(Failure::with(Status::Usage)(error))
}

/// The name of a character device in `/dev`, of which `path` may be a part or a link.
fn kernel_name(path: &Path) -> String {
    let (device, _) = region::split(path).unwrap_or_else(|_| (path.into(), Part::Whole));
    let node = path_of(&device).unwrap_or(device);
    let node = node.canonicalize().unwrap_or(node);
    node.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Checks that `offset` and `bytes` are whole blocks within the device. If only regions are
/// accessible, they must be within one.
fn check_range(
    disk: &Disk,
    path: &Path,
    (offset, bytes): (u64, u64),
    writes: bool,
) -> anyhow::Result<()> {
    let (unit, name) = (disk.block_bytes, path.display());
    for (key, value) in [("--offset", offset), ("--bytes", bytes)] {
        ensure!(value % unit == 0, "{key} {value}: must be a multiple of {name}'s {unit} bytes");
    }
    let is_inside = offset.checked_add(bytes).is_some_and(|end| end <= disk.bytes);
    if let DiskKind::Nvme(queue) = &disk.kind {
        let region = queue.region().name();
        ensure!(
            is_inside,
            "--offset {offset}, {bytes} bytes: outside the region {region}, which has {} bytes",
            disk.bytes
        );
    }
    ensure!(is_inside, "--offset {offset}, {bytes} bytes: {name} ends at {}", disk.bytes);
    let Some(regions) = disk.regions() else { return Ok(()) };
    let found = disk.region_of(offset).filter(|region| bytes <= region.end() - offset);
    let Some(region) = found else {
        let all: Vec<String> = regions.iter().map(ToString::to_string).collect();
        bail!(
            "--offset {offset}, {bytes} bytes: not in one region of {name}; its regions are: {}",
            all.join(", ")
        );
    };
    ensure!(
        !(writes && region.read_only),
        "--offset {offset}, {bytes} bytes: region {region} of {name} is read-only"
    );
    Ok(())
}

/// The range from `offset` to the end of the device or its region. Without an offset: all of it, or
/// of its first region that allows the operation.
fn rest(disk: &Disk, offset: Option<u64>, writes: bool) -> (u64, u64) {
    let usable = |region: &&Region| !(writes && region.read_only);
    match (offset, disk.regions()) {
        (None, Some(regions)) => regions
            .iter()
            .find(usable)
            .map_or((0, disk.bytes), |region| (region.offset, region.bytes)),
        (offset, _) => {
            let offset = offset.unwrap_or(0);
            let end = disk.region_of(offset).map_or(disk.bytes, Region::end);
            (offset, end.saturating_sub(offset))
        }
    }
}

fn stop() -> Result<Interrupt, Failure> {
    Interrupt::on_signals().map_err(Failure::with(Status::Failed))
}

/// The error that stopped a transfer, with its place.
fn at(path: &Path, offset: u64, error: io::Error) -> Failure {
    if error.kind() == io::ErrorKind::Interrupted {
        return Failure::with(Status::Interrupted)(anyhow!("interrupted"));
    }
    let source = anyhow::Error::new(error).context(format!("{}, byte {offset}", path.display()));
    Failure { status: Status::Failed, source }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn consent_for_a_character_device_names_it_in_any_form() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("chardisk0"), "").unwrap();
        std::os::unix::fs::symlink(at("chardisk0"), at("card")).unwrap();
        let link = at("card").to_str().unwrap().to_string();
        for given in [at("chardisk0"), at("card")] {
            for right in ["chardisk0", "/dev/chardisk0", &link] {
                assert!(consented(&given, Some(right)).is_ok(), "{right}");
            }
            for wrong in ["chardisk1", "card", "", "/"] {
                let said = consented(&given, Some(wrong)).unwrap_err().source.to_string();
                let says = "must name the device that is written to, chardisk0";
                assert_eq!(said, format!("--destroy-data {wrong}: {says}"));
            }
            let said = consented(&given, None).unwrap_err().source.to_string();
            assert!(said.ends_with("add --destroy-data chardisk0)"), "{said}");
        }
    }
}
