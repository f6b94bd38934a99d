// SPDX-License-Identifier: MIT OR Apache-2.0
//! Help names documents as in the sources, `docs/...`; where packages have installed them, by their
//! whole path.

use clap::Command;
use clap::builder::StyledStr;

/// Where packages install the documents.
pub const INSTALLED: &str = "/usr/share/doc/steadyio/docs";

/// A command, and all below it, whose help names the installed documents.
pub fn name_installed(command: Command) -> Command {
    let mut command = command.mut_args(|argument| {
        let texts = (argument.get_help().map(installed), argument.get_long_help().map(installed));
        let argument = if let Some(help) = texts.0 { argument.help(help) } else { argument };
        if let Some(help) = texts.1 { argument.long_help(help) } else { argument }
    });
    let below: Vec<String> = command.get_subcommands().map(|one| one.get_name().into()).collect();
    for name in below {
        command = command.mut_subcommand(name, name_installed);
    }
    command
}

fn installed(text: &StyledStr) -> String {
    text.to_string().replace("docs/", &format!("{INSTALLED}/"))
}
