// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady store repair`: restores a superblock from its copy.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::anyhow;
use steadyio_core::diagnostic;
use steadyio_core::interrupt::Interrupt;
use steadyio_store::repair::{Plan, plan};
use steadyio_store::storage::file::{Access, FileStorage, OpenError};

use super::failure;
use crate::exit::{Failure, Status};
use crate::output::{print, print_done};
use crate::progress::Pace;

#[derive(clap::Args)]
pub struct Arguments {
    /// Device or file of the store
    #[arg(value_name = "DEVICE")]
    device: PathBuf,
    /// Only print what is damaged, and change nothing
    #[arg(long)]
    check: bool,
    /// Overwrite another known format where the superblock was
    #[arg(long)]
    force: bool,
}

pub fn run(arguments: &Arguments, stop: &Interrupt) -> Result<Status, Failure> {
    let Arguments { device, check, .. } = arguments;
    let access = if *check { Access::Read } else { Access::Change };
    let mut storage = FileStorage::open(device, access).map_err(Failure::with(Status::Failed))?;
    let (mut pace, began) = (Pace::new(), Instant::now());
    let mut progress = |done: u64, all: u64| {
        if pace.is_due(began.elapsed()) {
            let (done, all, seconds) = (done >> 20, all >> 20, began.elapsed().as_secs());
            diagnostic!("steady: {done} of {all} MiB searched in {seconds} s");
        }
        !stop.requested()
    };
    let plan = plan(&mut storage, &mut progress).map_err(failure(device))?;
    let name = device.display();
    if plan.damaged.is_none() {
        return print(&format!("{name}: {plan}\n")).map(|()| Status::Done);
    }
    if *check {
        return print(&format!("{name}: {plan}\n")).map(|()| Status::Flawed);
    }
    check_place(arguments, &plan, &mut storage)?;
    plan.carry_out(&mut storage).map_err(failure(device))?;
    print_done(&format!("{name}: {plan}: the damaged one was written again\n"));
    Ok(Status::Done)
}

/// Checks the place of the superblock. The device may have another use now, with data there.
fn check_place(
    arguments: &Arguments,
    plan: &Plan,
    storage: &mut FileStorage,
) -> Result<(), Failure> {
    if arguments.force || plan.damaged.as_ref().is_none_or(|(at, _)| *at != 0) {
        return Ok(());
    }
    match storage.foreign_format(&arguments.device) {
        Ok(None) => Ok(()),
        Ok(Some(what)) => {
            let path = arguments.device.clone();
            let error = anyhow::Error::from(OpenError::Holds { path, what });
            Err(Failure::with(Status::Failed)(anyhow!("{error:#}; to allow this, add --force")))
        }
        Err(error) => Err(Failure::with(Status::Failed)(error)),
    }
}
