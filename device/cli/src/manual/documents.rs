// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replaces the names of documents in help texts, `docs/...`, by the full paths of the installed
//! ones.

use clap::Command;
use clap::builder::StyledStr;

/// The directory in which packages install the documents.
pub const INSTALLED: &str = "/usr/share/doc/steadyio/docs";

/// The command, and all below it, with the full paths in their help.
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
