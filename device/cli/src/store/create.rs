// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady store create`: makes a store, after checking the present contents of the device or file.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail, ensure};
use rustix::fs::FallocateFlags;
use steadyio_core::device_name::path_of;
use steadyio_core::interrupt::Interrupt;
use steadyio_direct::nvme::region::{Part, split};
use steadyio_store::format::geometry::{ALIGN_BYTES_MAX, EXTENTS_MAX};
use steadyio_store::storage::BLOCK_BYTES;
use steadyio_store::storage::file::{Access, FileStorage, OpenError};
use steadyio_store::store::{Store, StoreOptions};

use super::{failure, interrupted, named, sync_folder};
use crate::exit::{Failure, Status};
use crate::output::print_done;
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
    let options = options(arguments).map_err(Failure::with(Status::Usage))?;
    let made = make_file(&node, arguments.size, &options)?;
    let created = create(arguments, device, stop, (made, &options));
    if created.is_err() && made {
        // The file did not exist before.
        let _ = fs::remove_file(device);
    }
    let store = created?;
    if made {
        named(&node, sync_folder(&node))?;
    }
    let free = store.free();
    print_done(&format!(
        "{}: a store for {} extents, aligned to {} bytes; {} bytes are free\n",
        device.display(),
        store.geometry().extents_max,
        store.geometry().align_bytes,
        free.total_bytes
    ));
    Ok(Status::Done)
}

fn create(
    arguments: &Arguments,
    device: &Path,
    stop: &Interrupt,
    (made, options): (bool, &StoreOptions),
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
    Store::create(storage, options).map_err(failure(device))
}

/// The options, within the limits of the format.
fn options(arguments: &Arguments) -> anyhow::Result<StoreOptions> {
    let Arguments { align, extents, .. } = *arguments;
    let is_unit = |align: u64| align > 0 && align % BLOCK_BYTES == 0 && align <= ALIGN_BYTES_MAX;
    if let Some(align) = align.filter(|align| !is_unit(*align)) {
        bail!("--align {align}: must be a multiple of {BLOCK_BYTES}, at most {ALIGN_BYTES_MAX}");
    }
    let is_allowed = (1..=EXTENTS_MAX).contains(&extents);
    ensure!(is_allowed, "--extents {extents}: must be 1 to {EXTENTS_MAX}");
    Ok(StoreOptions { align_bytes: align, extents_max: extents, ..StoreOptions::default() })
}

/// Makes a file if there is none. Returns whether it did.
fn make_file(path: &Path, size: Option<u64>, options: &StoreOptions) -> Result<bool, Failure> {
    let usage =
        |text: &str| Err(Failure::with(Status::Usage)(anyhow!("{}: {text}", path.display())));
    match (fs::metadata(path), size) {
        (Err(error), None) if error.kind() == io::ErrorKind::NotFound => {
            usage("does not exist (--size makes a file)")
        }
        (Err(error), Some(bytes)) if error.kind() == io::ErrorKind::NotFound => {
            let name = || format!("{}: --size {bytes}", path.display());
            let fits = options.check_file(bytes).with_context(name);
            fits.map_err(Failure::with(Status::Usage))?;
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
