// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady man` and `steady completions`: files that packages install with the command, written
//! from the same declarations as `--help`.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::Command;
use clap_complete::Shell;

mod documents;
mod examples;
mod page;

pub use documents::{INSTALLED, name_installed};

use crate::exit::{Failure, MANUAL_HELP, Status};
use crate::output::print;

/// Write a manual page for each command, such as steady-bench.1, into a directory
#[derive(clap::Args)]
#[command(after_help = MANUAL_HELP)]
pub struct Man {
    /// Output directory, created if missing; pages with the same names are overwritten
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Generate shell completions
///
/// For example: steady completions bash >/etc/bash_completion.d/steady
#[derive(clap::Args)]
#[command(after_help = MANUAL_HELP)]
pub struct Completions {
    /// Shell to complete for
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

pub fn write(arguments: &Man, command: Command) -> Result<Status, Failure> {
    let directory = &arguments.directory;
    let mut command = name_installed(command).disable_help_subcommand(true);
    command.build();
    fs::create_dir_all(directory)
        .and_then(|()| page::write_all(&command, directory))
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::examples::examples_of;

    /// The command lines on the page of a command, and on those below it, up to a redirection.
    fn lines_of(command: &clap::Command) -> Vec<&'static str> {
        let own = examples_of(command.get_display_name().unwrap_or_else(|| command.get_name()));
        let lines = own.iter().map(|(_, line)| line.split('>').next().unwrap_or(line));
        let below = command.get_subcommands().flat_map(lines_of);
        lines.chain(below).collect()
    }

    #[test]
    fn each_example_is_a_valid_command_line() {
        let mut command = crate::Arguments::command();
        command.build();
        let lines = lines_of(&command);
        assert!(lines.len() > 20, "{lines:?}");
        for line in lines {
            let parsed = crate::Arguments::command().try_get_matches_from(line.split_whitespace());
            assert!(parsed.is_ok(), "{line}: {parsed:?}");
        }
    }
}
