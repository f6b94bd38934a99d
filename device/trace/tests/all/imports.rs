// SPDX-License-Identifier: MIT OR Apache-2.0
//! Modules of a folder import each other in one direction, so that each can be read without those above it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src");

/// Each module as its path from the crate, with its text.
fn modules(folder: &Path, path: &[String]) -> Vec<(Vec<String>, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = entry.file_stem().unwrap().to_str().unwrap().to_owned();
        let below = [path, &[name]].concat();
        if entry.is_dir() {
            found.extend(modules(&entry, &below));
        } else {
            let own = if entry.ends_with("mod.rs") { path.to_vec() } else { below };
            found.push((own, fs::read_to_string(entry).unwrap()));
        }
    }
    found
}

/// The module that a line imports from, as its path from the crate.
fn imported(module: &[String], line: &str) -> Option<Vec<String>> {
    let path = line.trim_start_matches("pub(super) ").strip_prefix("use ")?;
    let mut parts: Vec<String> = path.split("::").map(str::to_owned).collect();
    match parts.remove(0).as_str() {
        "crate" => Some(parts),
        "super" => Some([&module[..module.len() - 1], &parts].concat()),
        _ => None,
    }
}

/// Whether `from` leads back to itself.
fn is_in_circle(imports: &BTreeMap<&String, BTreeSet<String>>, from: &String) -> bool {
    let (mut open, mut seen) = (vec![from], BTreeSet::new());
    while let Some(module) = open.pop() {
        for next in imports.get(module).into_iter().flatten() {
            if next == from {
                return true;
            }
            if seen.insert(next) {
                open.push(next);
            }
        }
    }
    false
}

#[test]
fn no_modules_of_a_folder_import_each_other_in_a_circle() {
    let all = modules(Path::new(SOURCE), &[]);
    for folder in [&["report"][..], &["follow"], &["follow", "requests"], &["follow", "sink"]] {
        let depth = folder.len();
        let mut imports: BTreeMap<&String, BTreeSet<String>> = BTreeMap::new();
        for (module, text) in
            all.iter().filter(|(path, _)| path.len() > depth && path[..depth] == *folder)
        {
            let of = text.lines().filter_map(|line| imported(module, line));
            let beside = of.filter(|of| {
                of.len() > depth && of[..depth] == *folder && of[depth] != module[depth]
            });
            imports.entry(&module[depth]).or_default().extend(beside.map(|of| of[depth].clone()));
        }
        assert!(imports.len() > 1, "{folder:?}");
        let circle: Vec<_> = imports.keys().filter(|from| is_in_circle(&imports, from)).collect();
        assert!(circle.is_empty(), "{folder:?}: {circle:?}");
    }
}
