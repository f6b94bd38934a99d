// SPDX-License-Identifier: MIT OR Apache-2.0
//! Renders a command's manual page: clap_mangen's sections, and additional ones. `steady man` calls
//! it.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use clap::{Arg, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};

use super::examples::{examples_of, related_to};

const MANUAL: &str = "steadyio";
const EXIT_STATUS: &str = "Exit status: ";

/// Writes the pages of a built command and of all below it.
pub fn write_all(command: &Command, directory: &Path) -> io::Result<()> {
    for below in command.get_subcommands() {
        write_all(below, directory)?;
    }
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let mut text = Vec::new();
    render(command, name, &mut text)?;
    File::create(directory.join(format!("{name}.1")))?.write_all(&text)
}

fn render(command: &Command, name: &str, text: &mut Vec<u8>) -> io::Result<()> {
    let man = Man::new(command.clone()).title(name.to_uppercase()).manual(MANUAL);
    man.render_title(text)?;
    man.render_name_section(text)?;
    section(text, "SYNOPSIS", |roff| synopsis(roff, command))?;
    man.render_description_section(text)?;
    man.render_options_section(text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(text)?;
    }
    if let Some(help) = command.get_after_help() {
        section(text, "EXIT STATUS", |roff| exit_status(roff, &help.to_string()))?;
    }
    let examples = examples_of(name);
    if !examples.is_empty() {
        section(text, "EXAMPLES", |roff| show_examples(roff, examples))?;
    }
    section(text, "SEE ALSO", |roff| see_also(roff, command, name))
}

fn section(text: &mut Vec<u8>, title: &str, fill: impl FnOnce(&mut Roff)) -> io::Result<()> {
    let mut roff = Roff::default();
    roff.control("SH", [title]);
    fill(&mut roff);
    roff.to_writer(text)
}

fn synopsis(roff: &mut Roff, command: &Command) {
    let mut line = vec![bold(command.get_bin_name().unwrap_or_else(|| command.get_name()))];
    let shown = |argument: &&Arg| !argument.is_hide_set() && argument.get_id() != "help";
    let (positional, options): (Vec<&Arg>, Vec<&Arg>) =
        command.get_arguments().filter(shown).partition(|argument| argument.is_positional());
    for argument in options.into_iter().chain(positional) {
        line.push(roman(if argument.is_required_set() { " " } else { " [" }));
        line.extend(usage(argument));
        line.push(roman(if argument.is_required_set() { "" } else { "]" }));
        if is_repeated(argument) {
            line.push(roman("..."));
        }
    }
    if command.has_subcommands() {
        line.extend([roman(" "), italic("COMMAND")]);
    }
    roff.text(line);
}

fn usage(argument: &Arg) -> Vec<Inline> {
    let flag = match (argument.get_long(), argument.get_short()) {
        (Some(long), _) => Some(format!("--{long}")),
        (None, Some(short)) => Some(format!("-{short}")),
        (None, None) => None,
    };
    let is_last = argument.is_last_set();
    let mut parts: Vec<Inline> = flag.map(bold).into_iter().collect();
    if is_last {
        parts.push(bold("-- "));
    }
    if argument.is_positional() || argument.get_action().takes_values() {
        let names = argument.get_value_names().unwrap_or_default();
        let names = names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" ");
        parts.push(italic(if argument.is_positional() { names } else { format!(" {names}") }));
    }
    parts
}

fn is_repeated(argument: &Arg) -> bool {
    let many = argument.get_num_args().is_some_and(|range| range.max_values() > 1);
    many || matches!(argument.get_action(), clap::ArgAction::Append)
}

/// Lists each exit status with its meaning, from the help's form `0 done; 1 failed; ...`.
fn exit_status(roff: &mut Roff, help: &str) {
    let Some(list) = help.trim().strip_prefix(EXIT_STATUS) else {
        roff.text([roman(help)]);
        return;
    };
    let (list, rest) = list.split_once(". ").unwrap_or((list.trim_end_matches('.'), ""));
    for part in list.split("; ") {
        match part.split_once(' ') {
            Some((status, meaning)) if status.parse::<u8>().is_ok() => {
                roff.control("TP", []);
                roff.text([bold(status)]);
                roff.text([roman(meaning)]);
            }
            _ => {
                roff.text([roman(part)]);
            }
        }
    }
    if !rest.is_empty() {
        roff.control("PP", []);
        roff.text([roman(rest)]);
    }
}

fn show_examples(roff: &mut Roff, examples: &[(&str, &str)]) {
    for (meaning, line) in examples {
        roff.control("PP", []);
        roff.text([roman(*meaning)]);
        roff.control("PP", []);
        roff.control("RS", ["4"]);
        roff.control("nf", []);
        roff.text([roman(*line)]);
        roff.control("fi", []);
        roff.control("RE", []);
    }
}

fn see_also(roff: &mut Roff, command: &Command, name: &str) {
    let display = |below: &Command| below.get_display_name().unwrap_or_default().to_owned();
    let below = command.get_subcommands().map(display);
    let parent = name.rsplit_once('-').map(|(parent, _)| parent.to_owned());
    let others = related_to(name).iter().filter(|page| page.split('(').next() != Some(name));
    let related = others.map(|&related| related.to_owned());
    let pages: Vec<String> = parent.into_iter().chain(below).map(|page| page + "(1)").collect();
    let pages: Vec<String> = pages.into_iter().chain(related).collect();
    for (number, page) in pages.iter().enumerate() {
        let (title, number_of) = page.split_once('(').unwrap_or((page, ""));
        let comma = if number + 1 < pages.len() { "," } else { "" };
        roff.text([bold(title), roman(format!("({number_of}{comma}"))]);
    }
}
