// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady store`: manages extents by number on a device, without a file system.
//!
//! The work is in `steadyio_store`. This has its arguments, the check for data to overwrite, and
//! its output.

mod create;
mod repair;
mod report;
mod transfer;

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, ensure};
use clap::Subcommand;
use steadyio_core::diagnostic;
use steadyio_core::interrupt::Interrupt;
use steadyio_store::error::StoreError;
use steadyio_store::format::records::ENTRIES_MAX;
use steadyio_store::storage::file::{Access, FileStorage};
use steadyio_store::store::Store;

use crate::exit::{Failure, Status};
use crate::output::print_done;

const HELP: &str = "Exit status: 0 success; 1 failure or rejection (nothing was changed, or perhaps \
all after an error of the device); 2 usage error; 3 damage found (check, repair --check); 130 \
interrupted (nothing was changed).";

/// Store data in numbered, contiguous extents of a device, without a file system
///
/// DEVICE is a block device, a /dev/chardiskN, a /dev/ngXnY or a part of it such as /dev/ng0n1@p2
/// (see steady direct), or a regular file. A power cut or Ctrl-C leaves the
/// contents from before or from after the command.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Create an empty store on a device or in a file
    #[command(after_help = HELP)]
    Create(create::Arguments),
    /// Replace the contents of an extent with a file; create the extent if missing
    #[command(after_help = HELP)]
    Put(transfer::Put),
    /// Copy the contents of an extent to a file
    #[command(after_help = HELP)]
    Get(transfer::Get),
    /// Show all extents, and the free space
    #[command(after_help = HELP)]
    List(report::Arguments),
    /// Delete extents: all named ones, or none if power fails
    #[command(after_help = HELP)]
    Delete {
        /// Device or file of the store
        #[arg(value_name = "DEVICE")]
        device: PathBuf,
        /// Numbers of the extents
        #[arg(value_name = "ID", required = true)]
        id: Vec<u64>,
    },
    /// Read everything, report extents and damage, and change nothing
    #[command(after_help = HELP)]
    Check(report::Arguments),
    /// Write a damaged superblock again from its copy, or the copy from the superblock
    #[command(after_help = HELP)]
    Repair(repair::Arguments),
}

pub fn run(arguments: &Arguments) -> Result<Status, Failure> {
    let stop = Interrupt::on_signals().map_err(Failure::with(Status::Failed))?;
    match &arguments.action {
        Action::Create(arguments) => create::run(arguments, &stop),
        Action::Put(arguments) => transfer::put(arguments, &stop),
        Action::Get(arguments) => transfer::get(arguments, &stop),
        Action::List(arguments) => report::list(arguments),
        Action::Delete { device, id } => delete(device, id),
        Action::Check(arguments) => report::check(arguments, &stop),
        Action::Repair(arguments) => repair::run(arguments, &stop),
    }
}

/// A failure of a store, with its path.
fn failure(device: &Path) -> impl Fn(StoreError) -> Failure {
    let device = device.display().to_string();
    move |error| {
        let status = match &error {
            StoreError::Interrupted => Status::Interrupted,
            StoreError::Geometry(_) => Status::Usage,
            _ => Status::Failed,
        };
        Failure { status, source: anyhow::Error::from(error).context(device.clone()) }
    }
}

fn interrupted(device: &Path) -> Failure {
    let source = anyhow!("{}: interrupted: the store is as before", device.display());
    Failure { status: Status::Interrupted, source }
}

fn open_to_change(device: &Path) -> Result<Store<FileStorage>, Failure> {
    let storage =
        FileStorage::open(device, Access::Change).map_err(Failure::with(Status::Failed))?;
    let store = Store::open(storage).map_err(failure(device))?;
    warn(device, &store);
    Ok(store)
}

fn open_to_read(device: &Path) -> Result<Store<FileStorage>, Failure> {
    let storage = FileStorage::open(device, Access::Read).map_err(Failure::with(Status::Failed))?;
    let store = Store::open_to_read(storage).map_err(failure(device))?;
    warn(device, &store);
    Ok(store)
}

fn warn(device: &Path, store: &Store<FileStorage>) {
    for problem in store.problems() {
        diagnostic!("steady: {}: {problem}", device.display());
    }
}

fn delete(device: &Path, ids: &[u64]) -> Result<Status, Failure> {
    check_count(ids.len()).map_err(Failure::with(Status::Usage))?;
    let mut different = BTreeSet::new();
    if let Some(id) = ids.iter().find(|id| !different.insert(**id)) {
        return Err(Failure::with(Status::Usage)(anyhow!("ID {id}: is there twice")));
    }
    let mut store = open_to_change(device)?;
    for id in ids {
        store.delete(*id).map_err(failure(device))?;
    }
    store.flush().map_err(failure(device))?;
    let ids: Vec<String> = ids.iter().map(u64::to_string).collect();
    print_done(&format!("deleted: {}\n", ids.join(", ")));
    Ok(Status::Done)
}

/// Checks that so many extents can become durable together.
fn check_count(extents: usize) -> anyhow::Result<()> {
    ensure!(
        extents <= ENTRIES_MAX,
        "{extents} extents: must be at most {ENTRIES_MAX}, which become durable together (use \
         several commands)"
    );
    Ok(())
}

/// Makes the name of a new file durable, which a flush of its contents need not do.
fn sync_folder(file: &Path) -> std::io::Result<()> {
    let real = file.canonicalize()?;
    real.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// Adds the file of an argument to an error.
fn named<T>(path: &Path, result: std::io::Result<T>) -> Result<T, Failure> {
    result.with_context(|| path.display().to_string()).map_err(Failure::with(Status::Failed))
}
