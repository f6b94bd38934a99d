// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads and writes `incident-NAME.json` in the directory of the pool. Each incident is one file,
//! which is written and removed as a whole, so a power cut leaves all of it or nothing. `keeper`
//! and `steady incidents` call it.
//!
//! Only the process that holds the lock of the directory changes these files. Other processes ask
//! that process through `control`.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{Incident, IncidentError, SCHEMA};
use crate::mcap::names::rename;

const PREFIX: &str = "incident-";
const SUFFIX: &str = ".json";
/// The suffix of a file that is being written.
const UNFINISHED: &str = ".new";

fn at(path: &Path) -> impl FnOnce(io::Error) -> IncidentError {
    let path = path.to_path_buf();
    move |why| IncidentError::Io { path, why }
}

/// The path for a checked name.
pub fn path_of(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{PREFIX}{name}{SUFFIX}"))
}

/// Whether this is the name of such a file, also while it is written.
pub fn is_incident(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let name = name.strip_suffix(UNFINISHED).unwrap_or(&name);
    name.starts_with(PREFIX) && name.ends_with(SUFFIX)
}

fn file_names(dir: &Path) -> Result<Vec<String>, IncidentError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(at(dir))? {
        let name = entry.map_err(at(dir))?.file_name().to_string_lossy().into_owned();
        if name.starts_with(PREFIX) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// The number of incidents of a pool.
pub fn count(dir: &Path) -> Result<usize, IncidentError> {
    Ok(file_names(dir)?.iter().filter(|name| name.ends_with(SUFFIX)).count())
}

/// All incidents of a pool, the earliest first.
pub fn read_all(dir: &Path) -> Result<Vec<Incident>, IncidentError> {
    let mut incidents = Vec::new();
    for name in file_names(dir)?.iter().filter(|name| name.ends_with(SUFFIX)) {
        let path = dir.join(name);
        match fs::read(&path) {
            // Released in the meantime.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            read => incidents.push(parse(&path, &read.map_err(at(&path))?)?),
        }
    }
    incidents.sort_by_key(|incident| incident.to_ns);
    Ok(incidents)
}

/// The incident of this name.
pub fn read(dir: &Path, name: &str) -> Result<Incident, IncidentError> {
    super::check_name(name)?;
    let path = path_of(dir, name);
    match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(unknown(dir, name)?),
        read => parse(&path, &read.map_err(at(&path))?),
    }
}

fn unknown(dir: &Path, name: &str) -> Result<IncidentError, IncidentError> {
    let others: Vec<String> = read_all(dir)?.into_iter().map(|incident| incident.name).collect();
    let others = if others.is_empty() { "none".into() } else { others.join(", ") };
    Ok(IncidentError::Unknown { dir: dir.into(), name: name.into(), others })
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Incident, IncidentError> {
    let unreadable = |why: String| IncidentError::Unreadable { path: path.into(), why };
    let incident: Incident =
        serde_json::from_slice(bytes).map_err(|error| unreadable(error.to_string()))?;
    if incident.schema != SCHEMA {
        return Err(unreadable(format!("its schema is {:?}, not {SCHEMA:?}", incident.schema)));
    }
    Ok(incident)
}

/// Writes an incident's file, and makes it durable.
pub fn write(dir: &Path, incident: &Incident) -> Result<(), IncidentError> {
    let path = path_of(dir, &incident.name);
    let unfinished = dir.join(format!("{PREFIX}{}{SUFFIX}{UNFINISHED}", incident.name));
    let text = serde_json::to_string_pretty(incident).map_err(io::Error::from);
    let written = text.and_then(|text| {
        let mut file = File::create(&unfinished)?;
        file.write_all(text.as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        rename(&unfinished, &path)?;
        // On failure, the caller releases the segments, so the file must not stay.
        sync(dir).inspect_err(|_| drop(fs::remove_file(&path)))
    });
    written.map_err(|why| {
        let _ = fs::remove_file(&unfinished);
        at(&path)(why)
    })
}

/// Removes an incident's file, and makes the removal durable.
pub fn remove(dir: &Path, name: &str) -> Result<(), IncidentError> {
    super::check_name(name)?;
    let path = path_of(dir, name);
    match fs::remove_file(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(unknown(dir, name)?),
        removed => removed.and_then(|()| sync(dir)).map_err(at(&path)),
    }
}

/// Removes files that a power cut left unfinished.
pub fn remove_unfinished(dir: &Path) -> Result<(), IncidentError> {
    for name in file_names(dir)?.iter().filter(|name| name.ends_with(UNFINISHED)) {
        let path = dir.join(name);
        fs::remove_file(&path).map_err(at(&path))?;
    }
    Ok(())
}

fn sync(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn incident(name: &str, to_ns: u64) -> Incident {
        let (schema, name) = (SCHEMA.into(), name.into());
        Incident { schema, name, asked_ns: 5, from_ns: to_ns - 1, to_ns, segments: Vec::new() }
    }

    #[test]
    fn an_incident_is_there_as_a_whole_until_it_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let (first, second) = (incident("b", 10), incident("a.1", 20));
        write(dir, &second).unwrap();
        write(dir, &first).unwrap();
        assert!(write(dir, &first).is_err(), "none is replaced");
        fs::write(dir.join("incident-c.json.new"), "{").unwrap();
        assert_eq!(read_all(dir).unwrap(), [first.clone(), second]);
        assert_eq!(count(dir).unwrap(), 2);
        remove_unfinished(dir).unwrap();
        remove(dir, "a.1").unwrap();
        assert_eq!(fs::read_dir(dir).unwrap().count(), 1);
        assert_eq!(read(dir, "b").unwrap(), first);
        let gone = remove(dir, "a.1").unwrap_err().to_string();
        assert!(gone.ends_with("has no incident a.1; it has b"), "{gone}");
    }

    #[test]
    fn a_file_that_says_nothing_is_named() {
        let dir = tempfile::tempdir().unwrap();
        for text in ["", "{}", "{\"schema\": \"steadyio.incident/2\"}"] {
            fs::write(path_of(dir.path(), "x"), text).unwrap();
            let error = read_all(dir.path()).unwrap_err().to_string();
            assert!(error.contains("incident-x.json: cannot be read as an incident"), "{error}");
        }
    }

    #[test]
    fn a_name_leads_nowhere_else() {
        for name in ["a", "2026-01-31.12_00"] {
            crate::incident::check_name(name).unwrap();
        }
        for name in ["", ".", "..", "-a", "a/b", "a b", "ä", &"x".repeat(65)] {
            assert!(matches!(read(Path::new("/"), name), Err(IncidentError::Name(_))), "{name}");
        }
    }
}
