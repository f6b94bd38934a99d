// SPDX-License-Identifier: MIT OR Apache-2.0
//! Declares real-time tasks to k2 through `/dev/k2`. k2 guards them while the file is open. `steady
//! with`, the bench and `capi` use it.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::str::FromStr;

use crate::device::{Device, DeviceError};

/// The file for declarations.
pub const NODE: &str = "/dev/k2";
/// The number of real-time levels of k2.
const LEVELS: u32 = 8;

/// The parameters of a task, with the words of the file, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// The real-time level of its requests, 0 (first) to 7.
    pub level: u32,
    /// The time from one job to the next; if `sporadic`, the minimum.
    pub period_us: u32,
    /// A job may come this much before or after its time.
    pub jitter_us: u32,
    /// The longest time without a request inside a job.
    pub think_us: u32,
    /// The time for which background and lower levels may block a request.
    pub block_us: u32,
    /// The number of requests of each job; 0: not stated.
    pub exact: u32,
    pub sporadic: bool,
    pub owner: Owner,
}

/// The processes whose requests belong to the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Owner {
    /// The process that declares it, with all threads.
    #[default]
    Process,
    /// The processes of its cgroup, and of cgroups below.
    Cgroup,
}

/// The reason why a task was not declared.
#[derive(Debug, thiserror::Error)]
pub enum DeclareError {
    #[error("{NODE}{}", hint(source))]
    Open { source: io::Error },
    /// k2 rejected it, for this reason.
    #[error("{NODE}: {reason}")]
    Rejected { reason: String, source: io::Error },
    #[error(transparent)]
    Device(#[from] DeviceError),
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => " (is k2 loaded? modprobe k2)",
        io::ErrorKind::PermissionDenied => " (needs root, or a group that a udev rule gives it)",
        _ => "",
    }
}

/// The declared tasks. Dropping this, or the end of the process, ends them.
#[derive(Debug)]
pub struct Declared {
    file: File,
}

impl Declared {
    /// Opens the file, without a task.
    pub fn open() -> Result<Declared, DeclareError> {
        let file = OpenOptions::new().read(true).write(true).open(NODE);
        Ok(Declared { file: file.map_err(|source| DeclareError::Open { source })? })
    }

    /// Declares a task on a disk. The calling process owns it, or its cgroup.
    pub fn add(&mut self, device: &Device, task: &Task) -> Result<(), DeclareError> {
        self.write(&format!("dev={} {task}", device.number()?))
    }

    fn write(&mut self, line: &str) -> Result<(), DeclareError> {
        self.file.write_all(line.as_bytes()).map_err(|source| {
            let text = self.read().unwrap_or_default();
            let reason = text.lines().find_map(|line| line.strip_prefix("error "));
            DeclareError::Rejected { reason: reason.map_or(source.to_string(), Into::into), source }
        })
    }

    /// Reads one line per task, with state and counts.
    pub fn read(&mut self) -> io::Result<String> {
        let mut text = String::new();
        self.file.seek(SeekFrom::Start(0))?;
        self.file.read_to_string(&mut text)?;
        Ok(text)
    }
}

impl AsFd for Declared {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl From<Declared> for OwnedFd {
    fn from(declared: Declared) -> OwnedFd {
        declared.file.into()
    }
}

/// Leaves out default values.
impl fmt::Display for Task {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        let Task { level, period_us, block_us, .. } = self;
        write!(to, "level={level} period_us={period_us} block_us={block_us}")?;
        let more = [
            ("jitter_us", self.jitter_us),
            ("think_us", self.think_us),
            ("exact", self.exact),
            ("sporadic", u32::from(self.sporadic)),
        ];
        for (key, value) in more.into_iter().filter(|(_, value)| *value > 0) {
            write!(to, " {key}={value}")?;
        }
        if self.owner == Owner::Cgroup { write!(to, " owner=cgroup") } else { Ok(()) }
    }
}

fn number(key: &str, value: &str) -> Result<u32, String> {
    value.parse().map_err(|_| format!("{key}={value}: must be a whole number"))
}

impl Task {
    fn take(&mut self, key: &str, value: &str) -> Result<(), String> {
        let place = match key {
            "level" => &mut self.level,
            "period_us" => &mut self.period_us,
            "jitter_us" => &mut self.jitter_us,
            "think_us" => &mut self.think_us,
            "block_us" => &mut self.block_us,
            "exact" => &mut self.exact,
            "sporadic" => {
                self.sporadic = value == "1";
                let is_known = ["0", "1"].contains(&value);
                return is_known.then_some(()).ok_or(format!("sporadic={value}: must be 0 or 1"));
            }
            "owner" => {
                self.owner = if value == "cgroup" { Owner::Cgroup } else { Owner::Process };
                let is_known = ["process", "cgroup"].contains(&value);
                let wrong = || format!("owner={value}: must be process or cgroup");
                return is_known.then_some(()).ok_or_else(wrong);
            }
            _ => return Err(format!("{key}: unknown key")),
        };
        *place = number(key, value)?;
        Ok(())
    }
}

/// Parses k2's words, separated by spaces or commas: `level=0,period_us=10000,block_us=440`.
impl FromStr for Task {
    type Err = String;

    fn from_str(text: &str) -> Result<Task, String> {
        let mut task = Task {
            level: 0,
            period_us: 0,
            jitter_us: 0,
            think_us: 0,
            block_us: 0,
            exact: 0,
            sporadic: false,
            owner: Owner::Process,
        };
        let mut keys = Vec::new();
        for word in text.split([' ', ',']).filter(|word| !word.is_empty()) {
            let (key, value) =
                word.split_once('=').ok_or_else(|| format!("{word}: must be KEY=VALUE"))?;
            if keys.contains(&key) {
                return Err(format!("{key}: stated twice"));
            }
            task.take(key, value)?;
            keys.push(key);
        }
        for needed in ["level", "period_us", "block_us"] {
            if !keys.contains(&needed) {
                return Err(format!("{needed}: missing"));
            }
        }
        if task.level >= LEVELS {
            return Err(format!("level={}: must be 0 to 7", task.level));
        }
        Ok(task)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_written_as_it_is_read() {
        let text = "level=3 period_us=10000 block_us=440 jitter_us=200 think_us=100 exact=2 \
                    sporadic=1 owner=cgroup";
        let task: Task = text.parse().unwrap();
        assert_eq!(task.to_string(), text);
        assert_eq!(text.replace(' ', ",").parse(), Ok(task));
    }

    #[test]
    fn bad_words_are_named() {
        let whole = "level=0,period_us=10000,block_us=440";
        for (text, reason) in [
            ("level=0,period_us=10000", "block_us: missing"),
            ("level=0,level=1", "level: stated twice"),
            ("level", "level: must be KEY=VALUE"),
            ("colour=red", "colour: unknown key"),
            ("level=-1", "level=-1: must be a whole number"),
            (&format!("{whole},owner=me"), "owner=me: must be process or cgroup"),
            (&format!("{whole},sporadic=2"), "sporadic=2: must be 0 or 1"),
            ("level=8,period_us=1,block_us=1", "level=8: must be 0 to 7"),
        ] {
            assert_eq!(text.parse::<Task>(), Err(reason.to_string()));
        }
    }
}
