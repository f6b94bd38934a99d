// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `steady` command: arguments, progress, output and exit status; the work is in the other
//! crates.

mod apply;
mod bound;
mod bound_cpu;
mod cat;
mod destination;
mod direct;
mod doctor;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod documented;
mod examples;
mod export;
mod incidents;
mod info;
mod manual;
mod model;
mod model_tables;
mod pipe;
mod power;
mod probe;
mod record;
mod recover;
mod selection;
mod status;
mod store;
mod trace;
mod tune;
mod watch;

use std::env;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
// The modules that all commands share are also reachable through `crate`.
use steadyio_command::{bench, exit, output, progress, record_file, table, with};
use steadyio_core::{diagnostic, quantity};

/// Measure, trace and bound storage latency on Linux
#[derive(Parser)]
#[command(version, after_help = exit::HELP)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Apply(apply::Arguments),
    Bench(bench::Arguments),
    Bound(bound::Arguments),
    Cat(cat::Arguments),
    Completions(manual::Completions),
    Direct(direct::Arguments),
    Doctor(doctor::Arguments),
    Examples(examples::Arguments),
    Export(export::Arguments),
    Incidents(incidents::Arguments),
    Info(info::Arguments),
    Man(manual::Man),
    Model(model::Arguments),
    Probe(probe::Arguments),
    Record(Box<record::Arguments>),
    Recover(recover::Arguments),
    Status(status::Arguments),
    Store(store::Arguments),
    Trace(Box<trace::Arguments>),
    Tune(Box<tune::Arguments>),
    Watch(watch::Arguments),
    With(with::Arguments),
}

fn main() -> ExitCode {
    let arguments = match parse() {
        Ok(arguments) => arguments,
        Err(error) if error.use_stderr() => return usage_error(&error),
        Err(error) => return help_or_version(&error),
    };
    let outcome = match arguments.command {
        Command::Apply(arguments) => apply::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Bound(arguments) => bound::run(&arguments),
        Command::Cat(arguments) => cat::run(&arguments),
        Command::Completions(arguments) => manual::complete(&arguments, Arguments::command()),
        Command::Direct(arguments) => direct::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Examples(arguments) => examples::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::Incidents(arguments) => incidents::run(&arguments),
        Command::Info(arguments) => info::run(&arguments),
        Command::Man(arguments) => manual::write(&arguments, Arguments::command()),
        Command::Model(arguments) => model::run(&arguments),
        Command::Probe(arguments) => probe::run(&arguments),
        Command::Record(arguments) => record::run(&arguments),
        Command::Recover(arguments) => recover::run(&arguments),
        Command::Status(arguments) => status::run(&arguments),
        Command::Store(arguments) => store::run(&arguments),
        Command::Trace(arguments) => trace::run(&arguments),
        Command::Tune(arguments) => tune::run(&arguments),
        Command::Watch(arguments) => watch::run(&arguments),
        Command::With(arguments) => return with::run(&arguments),
    };
    match outcome {
        Ok(status) => status.into(),
        Err(error) => error.report(),
    }
}

fn parse() -> Result<Arguments, clap::Error> {
    let mut command = Arguments::command();
    if Path::new(manual::INSTALLED).is_dir() {
        command = manual::name_installed(command);
    }
    let matches = command.try_get_matches()?;
    Arguments::from_arg_matches(&matches)
}

/// Prints help or the version. A failed write is an error, as for all output.
fn help_or_version(error: &clap::Error) -> ExitCode {
    let text = error.render();
    let colored = io::stdout().is_terminal() && env::var_os("NO_COLOR").is_none();
    let text = if colored { text.ansi().to_string() } else { text.to_string() };
    match output::print(&text) {
        Ok(()) => exit::Status::Done.into(),
        Err(error) => {
            diagnostic!("steady: {:#}", error.source);
            error.status.into()
        }
    }
}

/// Errors of the standard library's parsers, and the allowed values.
const ALLOWED: [(&str, &str); 4] = [
    ("invalid digit found in string", "must be a whole number"),
    ("cannot parse integer from empty string", "must be a whole number"),
    ("number too large to fit in target type", "is too large a number"),
    ("invalid float literal", "must be a number"),
];

/// Prints a usage error. clap's own printing could wait for a reader.
fn usage_error(error: &clap::Error) -> ExitCode {
    let text = error.render();
    let colored = io::stderr().is_terminal() && env::var_os("NO_COLOR").is_none();
    let mut text = if colored { text.ansi().to_string() } else { text.to_string() };
    for (parser_says, allowed) in ALLOWED {
        text = text.replace(parser_says, allowed);
    }
    if error.kind() == ErrorKind::InvalidUtf8 {
        let arguments = env::args_os().filter(|argument| argument.to_str().is_none());
        let arguments: Vec<String> = arguments.map(|argument| format!("{argument:?}")).collect();
        text += &format!("\n{}: must be UTF-8\n", arguments.join(", "));
    }
    diagnostic::write_text(&text);
    exit::Status::Usage.into()
}
