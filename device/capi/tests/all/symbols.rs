// SPDX-License-Identifier: MIT OR Apache-2.0
//! The library's symbols are those that its headers declare and that Debian's package lists.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::c_example::{install, run};

/// The functions that the headers declare: each name before a parenthesis, outside of comments.
fn declared() -> BTreeSet<String> {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let headers = ["steadyio.h", "steadyio_store.h"].map(|name| include.join(name));
    let preprocessed = run(Command::new("cc").args(["-E", "-P", "-I"]).arg(include).args(headers));
    String::from_utf8(preprocessed.stdout)
        .unwrap()
        .split('(')
        .filter_map(|before| before.rsplit(|end: char| !end.is_alphanumeric() && end != '_').next())
        .filter(|name| name.starts_with("steadyio_"))
        .map(String::from)
        .collect()
}

fn exported() -> BTreeSet<String> {
    let prefix = tempfile::tempdir().unwrap();
    install(prefix.path());
    let library = prefix.path().join("lib/libsteadyio.so");
    let listed = run(Command::new("nm").args(["-D", "--defined-only"]).arg(library));
    String::from_utf8(listed.stdout)
        .unwrap()
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .map(String::from)
        .collect()
}

/// From the package's file: ` NAME@Base VERSION`.
fn packaged() -> BTreeSet<String> {
    include_str!("../../../../packaging/debian/libsteadyio0.symbols")
        .lines()
        .filter_map(|line| line.strip_prefix(' ')?.split_once('@'))
        .map(|(name, _)| name.to_owned())
        .collect()
}

#[test]
fn library_headers_and_package_name_the_same_functions() {
    let exported = exported();
    assert!(!exported.is_empty());
    assert_eq!(exported, declared());
    assert_eq!(exported, packaged());
}
