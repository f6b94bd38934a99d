// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of `steady` that the lab's figures run in guests. It is a separate program, so that it
//! builds sooner, and so that a change of another command changes no figure and repeats no boot.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use steadyio_command::{bench, exit, with};

/// Measure storage latency in a guest of the lab
#[derive(Parser)]
#[command(version, after_help = exit::HELP)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Bench(bench::Arguments),
    With(with::Arguments),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Bench(arguments) => match bench::run(&arguments) {
            Ok(status) => status.into(),
            Err(error) => error.report(),
        },
        Command::With(arguments) => with::run(&arguments),
    }
}
