// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady store create`: makes a store, after checking the present contents of the device or file.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use rustix::fs::FallocateFlags;
use steadyio_core::device_name::path_of;
use steadyio_core::interrupt::Interrupt;
use steadyio_direct::nvme::region::{Part, split};
use steadyio_store::storage::file::{Access, FileStorage, OpenError};
use steadyio_store::store::{Store, StoreOptions};

use super::{failure, interrupted, named};
use crate::exit::{Failure, Status};
use crate::output::print;
use crate::quantity::size;

#[derive(clap::Args)]
pub struct Arguments {
    /// Block device, chardiskN or ngXnY, by name or node, or a file; a missing file is created
    #[arg(value_name = "DEVICE")]
    device: PathBuf,
    /// Size of a new file
    #[arg(long, value_name = "SIZE", value_parser = size)]
    size: Option<u64>,
    /// Alignment of extents: a multiple of the device's erase unit [default: as reported by the
    /// device, else 1MiB]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    align: Option<u64>,
    /// Maximum number of extents
    #[arg(long, value_name = "NUMBER", default_value_t = StoreOptions::default().extents_max)]
    extents: u32,
    /// Overwrite existing contents of the device or file
    #[arg(long)]
    force: bool,
}

pub fn run(arguments: &Arguments, stop: &Interrupt) -> Result<Status, Failure> {
    let (node, part) = split(&arguments.device).map_err(Failure::with(Status::Usage))?;
    let node = path_of(&node).map_err(Failure::with(Status::Usage))?;
    let device = if part == Part::Whole { &node } else { &arguments.device };
    let made = make_file(&node, arguments.size)?;
    let created = create(arguments, device, stop, made);
    if created.is_err() && made {
        // The file did not exist before.
        let _ = fs::remove_file(device);
    }
    let store = created?;
    let free = store.free();
    print(&format!(
        "{}: a store for {} extents, aligned to {} bytes; {} bytes are free\n",
        device.display(),
        store.geometry().extents_max,
        store.geometry().align_bytes,
        free.total_bytes
    ))?;
    Ok(Status::Done)
}

fn create(
    arguments: &Arguments,
    device: &Path,
    stop: &Interrupt,
    made: bool,
) -> Result<Store<FileStorage>, Failure> {
    // A device in use is an error, even with --force.
    let mut storage =
        FileStorage::open(device, Access::Change).map_err(Failure::with(Status::Failed))?;
    if !arguments.force && !made {
        storage.check_empty(device).map_err(|error| {
            let holds = matches!(error, OpenError::Holds { .. });
            let hint = if holds { "; to allow this, add --force" } else { "" };
            Failure::with(Status::Failed)(anyhow!("{:#}{hint}", anyhow::Error::from(error)))
        })?;
    }
    if stop.requested() {
        return Err(interrupted(device));
    }
    let options = StoreOptions {
        align_bytes: arguments.align,
        extents_max: arguments.extents,
        ..StoreOptions::default()
    };
    Store::create(storage, &options).map_err(failure(device))
}

/// Makes a file if there is none. Returns whether it did.
fn make_file(path: &Path, size: Option<u64>) -> Result<bool, Failure> {
    let usage =
        |text: &str| Err(Failure::with(Status::Usage)(anyhow!("{}: {text}", path.display())));
    match (fs::metadata(path), size) {
        (Err(error), None) if error.kind() == io::ErrorKind::NotFound => {
            usage("does not exist (--size makes a file)")
        }
        (Err(error), Some(bytes)) if error.kind() == io::ErrorKind::NotFound => {
            named(path, OpenOptions::new().write(true).create_new(true).open(path))
                .and_then(|file| {
                    named(path, fill(&file, bytes)).inspect_err(|_| {
                        let _ = fs::remove_file(path);
                    })
                })
                .map(|()| true)
        }
        (Err(error), _) => named(path, Err(error)),
        (Ok(_), Some(_)) => usage("exists (--size is for new files)"),
        (Ok(_), None) => Ok(false),
    }
}

/// Allocates all blocks, so that no later write meets a full file system.
fn fill(file: &File, bytes: u64) -> io::Result<()> {
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes) {
        Err(rustix::io::Errno::OPNOTSUPP) => file.set_len(bytes),
        done => Ok(done?),
    }
}
