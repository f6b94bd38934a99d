// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady with --class CLASS=FORMAT:FILE`: reads a class of a program's record from a file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::dd::{self, Copying};
use super::{recording, sysbench};
use crate::record::{ClassResult, Tool};
use crate::spec::workload::Class;

/// A class that cannot be read; the text names the file and the missing part.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SourceError(String);

/// The format of a file, in the words of `--class`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Format {
    Sysbench,
    Dd(Copying),
    Recording,
    RecordingChanges,
}

/// The files of a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassSource {
    pub class: Class,
    format: Format,
    /// The path; its file name may contain `*`.
    pattern: PathBuf,
}

impl FromStr for ClassSource {
    type Err = String;

    fn from_str(text: &str) -> Result<ClassSource, String> {
        let wanted = || "must be CLASS=FORMAT:FILE".to_string();
        let (class, rest) = text.split_once('=').ok_or_else(wanted)?;
        let (format, file) = rest.split_once(':').ok_or_else(wanted)?;
        let class = match class {
            "rt" => Class::Rt,
            "bg" => Class::Bg,
            _ => return Err("the class must be rt or bg".into()),
        };
        if file.is_empty() {
            return Err("the file is missing".into());
        }
        Ok(ClassSource { class, format: format.parse()?, pattern: file.into() })
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Format, String> {
        let (name, options) = text.split_once(',').unwrap_or((text, ""));
        match name {
            "dd" => options.parse().map(Format::Dd),
            _ if !options.is_empty() => Err("only dd has options".into()),
            "sysbench" => Ok(Format::Sysbench),
            "recording" => Ok(Format::Recording),
            "recording-changes" => Ok(Format::RecordingChanges),
            _ => Err("the format must be sysbench, dd, recording or recording-changes".into()),
        }
    }
}

impl ClassSource {
    /// Reads the class. A version in its file is added to `tool`.
    pub fn read(&self, tool: &mut Tool) -> Result<ClassResult, SourceError> {
        match &self.format {
            Format::Dd(copying) => {
                let files = self.paths()?;
                let found: Result<Vec<_>, _> =
                    files.iter().map(|path| read(path, dd::parse)).collect();
                Ok(copying.class(&found?))
            }
            Format::Recording => self.one_file(recording::caller),
            Format::RecordingChanges => self.one_file(recording::changes),
            Format::Sysbench => {
                let (found, version) = self.one_file(sysbench::parse)?;
                tool.sysbench = Some(version);
                Ok(found)
            }
        }
    }

    fn one_file<T>(&self, parse: impl Fn(&str) -> Result<T, String>) -> Result<T, SourceError> {
        match self.paths()?.as_slice() {
            [only] => read(only, parse),
            several => {
                let reason =
                    format!("{} files have such a name, only dd may have several", several.len());
                Err(failure(&self.pattern, reason))
            }
        }
    }

    /// The files, at least one.
    fn paths(&self) -> Result<Vec<PathBuf>, SourceError> {
        let paths = matching(&self.pattern).map_err(|error| failure(&self.pattern, error))?;
        if paths.is_empty() { Err(failure(&self.pattern, "no such file")) } else { Ok(paths) }
    }
}

fn read<T>(path: &Path, parse: impl Fn(&str) -> Result<T, String>) -> Result<T, SourceError> {
    let text = fs::read_to_string(path).map_err(|error| failure(path, error))?;
    parse(&text).map_err(|reason| failure(path, reason))
}

fn failure(path: &Path, reason: impl std::fmt::Display) -> SourceError {
    SourceError(format!("{}: {reason}", path.display()))
}

/// The files whose names match the pattern, in which `*` stands for any text, sorted by name.
fn matching(pattern: &Path) -> io::Result<Vec<PathBuf>> {
    let name = pattern.file_name().unwrap_or_default().to_string_lossy();
    if !name.contains('*') {
        return Ok(vec![pattern.to_path_buf()]);
    }
    let folder = pattern.parent().unwrap_or(Path::new(""));
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let mut found = Vec::new();
    for entry in fs::read_dir(here)? {
        let entry = entry?.file_name();
        if fits(&entry.to_string_lossy(), &name) {
            found.push(folder.join(entry));
        }
    }
    found.sort();
    Ok(found)
}

fn fits(name: &str, pattern: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return name == pattern };
    let Some(after) = name.strip_prefix(start) else { return false };
    (0..=after.len()).any(|at| after.get(at..).is_some_and(|after| fits(after, rest)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn class(dir: &Path, source: &str) -> Result<ClassResult, SourceError> {
        let mut source: ClassSource = source.parse().unwrap();
        source.pattern = dir.join(source.pattern);
        source.read(&mut Tool { steady: "", fio: None, sysbench: None })
    }

    #[test]
    fn a_star_stands_for_any_text_and_only_dd_has_several_files() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["dd-1.txt", "dd-2.txt", "dd.txt", "dd-1.old"] {
            fs::write(dir.path().join(name), "1048576 bytes copied, 1 s, 1 MB/s\n").unwrap();
        }
        assert_eq!(class(dir.path(), "bg=dd:dd-*.txt").unwrap().mib_s, Some(2.0));
        assert_eq!(class(dir.path(), "bg=dd:*d*").unwrap().mib_s, Some(4.0));
        assert_eq!(class(dir.path(), "bg=dd:dd.txt").unwrap().mib_s, Some(1.0));
        let several = class(dir.path(), "rt=sysbench:dd-*.txt").unwrap_err().to_string();
        assert!(several.contains("dd-*.txt: 2 files have such a name"), "{several}");
    }

    #[test]
    fn a_file_that_is_missing_or_wrong_is_named() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("dd.txt"), "dd: error reading\n").unwrap();
        for (source, says) in [
            ("bg=dd:none", "/none: No such file"),
            ("bg=dd:none-*", "/none-*: no such file"),
            ("bg=dd:*", "/dd.txt: has no line"),
            ("bg=dd:gone/*", "/gone/*: No such file"),
            ("rt=sysbench:dd.txt", "/dd.txt: not a sysbench report"),
            ("rt=recording:dd.txt", "/dd.txt: not a steadyio.recording/1 result"),
        ] {
            let said = class(dir.path(), source).unwrap_err().to_string();
            assert!(said.contains(says), "{said}");
        }
    }

    #[test]
    fn an_option_that_is_not_understood_says_what_is_wanted() {
        for (text, says) in [
            ("rt", "CLASS=FORMAT:FILE"),
            ("rt=dd", "CLASS=FORMAT:FILE"),
            ("total=dd:f", "must be rt or bg"),
            ("rt=iperf:f", "must be sysbench, dd, recording or recording-changes"),
            ("rt=dd:", "the file is missing"),
            ("rt=sysbench,op=read:f", "only dd has options"),
            ("bg=dd,count=1:f", "op=WORD and bs_kib=N"),
        ] {
            let said = text.parse::<ClassSource>().unwrap_err();
            assert!(said.contains(says), "{said}");
        }
    }
}
