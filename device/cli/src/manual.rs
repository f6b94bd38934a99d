// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady man` and `steady completions`: what packages install beside the command, written from the
//! same declarations as `--help`.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::Command;
use clap_complete::Shell;

use crate::exit::{Failure, MANUAL_HELP, Status};
use crate::output::print;

/// Write a manual page of each command, such as steady-bench.1, into a directory
#[derive(clap::Args)]
#[command(after_help = MANUAL_HELP)]
pub struct Man {
    /// Made if it is not there; pages of these names are overwritten
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Print what a shell completes the command line with
///
/// For example: steady completions bash >/etc/bash_completion.d/steady
#[derive(clap::Args)]
#[command(after_help = MANUAL_HELP)]
pub struct Completions {
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

pub fn write(arguments: &Man, command: Command) -> Result<Status, Failure> {
    let directory = &arguments.directory;
    fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(command, directory))
        .with_context(|| directory.display().to_string())
        .map_err(Failure::with(Status::Failed))?;
    Ok(Status::Done)
}

pub fn complete(arguments: &Completions, mut command: Command) -> Result<Status, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "steady", &mut text);
    print(&String::from_utf8_lossy(&text))?;
    Ok(Status::Done)
}
