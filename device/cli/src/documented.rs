// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that the command lines in the documents exist: every subcommand and option of each, and
//! all of a line without placeholders. They are not run.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory};

use super::Arguments;

/// Arguments that begin with `steady`, and where a document has them.
struct Line {
    place: String,
    words: Vec<String>,
    /// Whether a reader can type it: it is a line of a block, not a name within a sentence.
    in_block: bool,
}

fn root() -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).to_path_buf()
}

fn documents(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            documents(&path, found);
        } else if path.extension().is_some_and(|suffix| suffix == "md") {
            found.push(path);
        }
    }
}

/// Splits a line as a shell does, without its comment.
fn words(line: &str) -> Vec<String> {
    let (mut found, mut quote) = (vec![String::new()], None);
    for letter in line.chars() {
        match (letter, quote) {
            ('#', None) if found.last().is_some_and(String::is_empty) => break,
            ('\'' | '"', None) => quote = Some(letter),
            (_, Some(open)) if letter == open => quote = None,
            (' ' | '\t', None) => found.push(String::new()),
            _ => found.last_mut().unwrap().push(letter),
        }
    }
    found.retain(|word| !word.is_empty());
    found
}

/// The calls of `steady` in a line. Each ends at the next shell operator.
fn calls(line: &str) -> Vec<Vec<String>> {
    let ends =
        |word: &String| matches!(word.as_str(), "|" | "&&" | ";" | "&") || word.contains('>');
    let is_steady = |word: &String| word == "steady" || word.ends_with("/steady");
    words(line)
        .split(ends)
        .filter_map(|call| {
            let at = call.iter().position(is_steady)?;
            let is_run = at == 0 || call[0] == "ssh" || call[at - 1] == "--";
            is_run.then(|| call[at..].to_vec())
        })
        .filter(|call| call.len() > 1)
        .collect()
}

/// The command lines of a document: in blocks of code, and between backticks.
fn lines_of(path: &Path) -> Vec<Line> {
    let text = fs::read_to_string(path).unwrap().replace("\\\n", " ");
    let (mut found, mut block) = (Vec::new(), None);
    for (at, line) in text.lines().enumerate() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            block = if block.is_none() { Some(language) } else { None };
            continue;
        }
        let spans: Vec<&str> = match block {
            Some("" | "sh") => vec![line.trim_start().trim_start_matches(['$', '#']).trim_start()],
            Some(_) => Vec::new(),
            None => line.split('`').skip(1).step_by(2).collect(),
        };
        for words in spans.into_iter().flat_map(calls) {
            let place = format!("{}, line {}", path.display(), at + 1);
            found.push(Line { place, words, in_block: block.is_some() });
        }
    }
    found
}

fn lines() -> Vec<Line> {
    let mut paths = vec![root().join("README.md")];
    documents(&root().join("docs"), &mut paths);
    paths.iter().flat_map(|path| lines_of(path)).collect()
}

/// Whether a word stands for another, as in `DEVICE`, `[--json]` or `SPEC.toml`.
fn is_placeholder(word: &str) -> bool {
    let name = word.split(['=', '/', '.']).any(|part| {
        part.len() > 1 && part.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_')
    });
    name || word.contains("...") || word.starts_with('[') || word.contains('|')
}

/// The subcommand that a line names, and its words after that.
fn subcommand<'a>(
    mut command: &'a Command,
    mut words: &'a [String],
) -> (&'a Command, &'a [String]) {
    while let Some(next) = words.first().and_then(|word| command.find_subcommand(word)) {
        (command, words) = (next, &words[1..]);
    }
    (command, words)
}

/// Why a line is wrong.
fn wrong(line: &Line) -> Option<String> {
    let mut whole = Arguments::command();
    whole.build();
    let (command, rest) = subcommand(&whole, &line.words[1..]);
    let program = line.words.iter().position(|word| word == "--").unwrap_or(line.words.len());
    let own = &rest[..rest.len() - (line.words.len() - program)];
    if command.has_subcommands() {
        let first = own.first().filter(|word| !word.starts_with('-') && !is_placeholder(word));
        return first.map(|word| format!("no subcommand {word}"));
    }
    for word in own {
        let name = word.trim_matches(['[', ']', ',', '(', ')']);
        let Some(long) = name.strip_prefix("--") else { continue };
        let long = long.split(['=', '[']).next().unwrap_or_default();
        let known = command.get_arguments().any(|one| one.get_long() == Some(long));
        if !known && !["help", "version"].contains(&long) {
            return Some(format!("no option --{long}"));
        }
    }
    None
}

#[test]
fn every_subcommand_and_option_in_the_documents_exists() {
    let lines = lines();
    assert!(lines.len() > 200, "{} command lines", lines.len());
    let wrong =
        |line: &Line| wrong(line).map(|why| format!("{}: {:?}: {why}", line.place, line.words));
    let found: Vec<String> = lines.iter().filter_map(wrong).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_command_line_without_placeholders_is_accepted() {
    let is_whole =
        |line: &&Line| line.in_block && !line.words.iter().any(|word| is_placeholder(word));
    let mut refused = Vec::new();
    for Line { place, words, .. } in lines().iter().filter(is_whole) {
        if let Err(error) = Arguments::command().try_get_matches_from(words) {
            if error.use_stderr() {
                refused.push(format!("{place}: {words:?}: {error}"));
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[test]
fn a_wrong_option_and_a_wrong_subcommand_are_found() {
    let line = |text: &str| Line { place: String::new(), words: words(text), in_block: true };
    assert_eq!(wrong(&line("steady info --jsno DIR")), Some("no option --jsno".into()));
    assert_eq!(wrong(&line("steady inof DIR")), Some("no subcommand inof".into()));
    assert_eq!(wrong(&line("steady with --device D -- PROGRAM --any")), None);
}

#[test]
fn a_call_ends_at_an_operator_and_a_comment() {
    let all = calls("cat a | build/bin/steady record --input - 2>&1 >out && steady info 'a b' # c");
    assert_eq!(all.len(), 2);
    assert_eq!(all[0][1..], ["record", "--input", "-"]);
    assert_eq!(all[1], ["steady", "info", "a b"]);
}
