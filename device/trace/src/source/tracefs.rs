// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's tracing files, and a guard over an instance of our own in them.
//!
//! An instance has its own buffers, clock and set of enabled events, so other tracing is not disturbed. Life of
//! a guard: `create` removes what killed runs left, then makes the instance; dropping it takes everything back.
//! Only SIGKILL leaves it, and the next `create` removes it.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fd::{AsRawFd, OwnedFd};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};

use super::pid_namespace;

/// Every instance of ours begins so; its process and that one's start follow.
const PREFIX: &str = "steady-";
const TRACEFS_MAGIC: u64 = 0x7472_6163;

/// With the PID namespace before the process, if it is not the initial one: only there can it be told whether the
/// process is gone.
fn prefix() -> String {
    match pid_namespace::other_than_initial() {
        Some(namespace) => format!("{PREFIX}in-{namespace}-"),
        None => PREFIX.into(),
    }
}

/// The kernel cannot be traced, or tracing not be configured.
#[derive(Debug, thiserror::Error)]
pub enum TracefsError {
    #[error("{} may be used by root only: run as root, or trace with another tool and give its file", path.display())]
    NotRoot { path: PathBuf },
    /// There is no tracefs.
    #[error(
        "the kernel has no tracefs ({error}): it needs CONFIG_TRACING and, for I/O, CONFIG_BLK_DEV_IO_TRACE"
    )]
    Absent {
        /// Why mounting it failed.
        error: io::Error,
    },
    /// A file of tracefs could not be read or written.
    #[error("{}: {}{error}", path.display(), .value.as_ref().map(|value| format!("{value:?}: ")).unwrap_or_default())]
    File {
        path: PathBuf,
        /// What was to be written.
        value: Option<String>,
        error: io::Error,
    },
}

fn file_error(path: &Path, value: Option<&str>, error: io::Error) -> TracefsError {
    let path = path.to_path_buf();
    match error.kind() {
        ErrorKind::PermissionDenied => TracefsError::NotRoot { path },
        _ => TracefsError::File { path, value: value.map(str::to_string), error },
    }
}

/// The kernel's tracing files.
#[derive(Debug)]
pub struct Tracefs {
    root: PathBuf,
    /// A mount of our own, at no place in the file system; it goes when this is dropped.
    _mount: Option<OwnedFd>,
}

impl Tracefs {
    /// Where it is mounted, or else mounted for this process only.
    pub fn find() -> Result<Tracefs, TracefsError> {
        for root in ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"] {
            let root = PathBuf::from(root);
            match rustix::fs::statfs(&root) {
                Ok(found) if u64::try_from(found.f_type) == Ok(TRACEFS_MAGIC) => {
                    return Ok(Tracefs { root, _mount: None });
                }
                Err(rustix::io::Errno::ACCESS) => return Err(TracefsError::NotRoot { path: root }),
                _ => {}
            }
        }
        Tracefs::mount()
    }

    /// Mounted for this process only.
    pub fn mount() -> Result<Tracefs, TracefsError> {
        let mount = mount().map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied => TracefsError::NotRoot { path: "tracefs".into() },
            _ => TracefsError::Absent { error },
        })?;
        let root = format!("/proc/self/fd/{}", mount.as_raw_fd()).into();
        Ok(Tracefs { root, _mount: Some(mount) })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }
}

/// A mount that no other process sees.
fn mount() -> io::Result<OwnedFd> {
    let context = rustix::mount::fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_create(&context)?;
    let flags = FsMountFlags::FSMOUNT_CLOEXEC;
    Ok(rustix::mount::fsmount(&context, flags, MountAttrFlags::empty())?)
}

/// An instance of our own; dropping it ends its tracing and removes it.
#[derive(Debug)]
pub struct Instance {
    dir: PathBuf,
    _tracefs: Tracefs,
}

impl Instance {
    /// Makes an instance that traces nothing yet; `note` is told of each that a killed run left and that is
    /// removed first.
    pub fn create(
        tracefs: Tracefs,
        note: &mut dyn FnMut(String),
    ) -> Result<Instance, TracefsError> {
        let instances = tracefs.root.join("instances");
        remove_leftovers(&instances, note)?;
        let pid = std::process::id();
        let started = started_ticks(pid).unwrap_or_default();
        // One process may trace twice at a time, as tests do.
        for number in 0.. {
            let dir = instances.join(format!("{}{pid}-{started}-{number}", prefix()));
            match fs::create_dir(&dir) {
                Ok(()) => {
                    let instance = Instance { dir, _tracefs: tracefs };
                    instance.write("tracing_on", "0")?;
                    return Ok(instance);
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(file_error(&dir, None, error)),
            }
        }
        unreachable!("there are more numbers than instances")
    }

    /// A file or folder of it.
    pub fn path(&self, file: &str) -> PathBuf {
        self.dir.join(file)
    }

    /// Reads one of its files.
    pub fn read(&self, file: &str) -> Result<String, TracefsError> {
        let path = self.path(file);
        read(&path).map_err(|error| file_error(&path, None, error))
    }

    /// Writes one of its files, in one call.
    pub fn write(&self, file: &str, value: &str) -> Result<(), TracefsError> {
        let path = self.path(file);
        write(&path, value).map_err(|error| file_error(&path, Some(value), error))
    }

    /// The CPUs that it has buffers for, in order.
    pub fn cpus(&self) -> Result<Vec<u32>, TracefsError> {
        let path = self.path("per_cpu");
        let names = names_in(&path).map_err(|error| file_error(&path, None, error))?;
        let mut cpus: Vec<u32> =
            names.iter().filter_map(|name| name.strip_prefix("cpu")?.parse().ok()).collect();
        cpus.sort_unstable();
        Ok(cpus)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.dir) {
            eprintln!("steady: {} could not be removed: {error}", self.dir.display());
        }
    }
}

/// Removes instances of processes that are gone.
fn remove_leftovers(instances: &Path, note: &mut dyn FnMut(String)) -> Result<(), TracefsError> {
    let names = names_in(instances).map_err(|error| file_error(instances, None, error))?;
    let prefix = prefix();
    for name in names {
        let mut parts = name.strip_prefix(&prefix).unwrap_or_default().split('-').map(str::parse);
        let (Some(Ok(pid)), Some(Ok(started))) = (parts.next(), parts.next()) else { continue };
        let pid: u64 = pid;
        // A process ID may be in use again; the time of its start tells.
        if u32::try_from(pid).ok().and_then(started_ticks) == Some(started) {
            continue;
        }
        let dir = instances.join(&name);
        match remove(&dir) {
            Ok(()) => note(format!("removed the tracefs instance of a killed run ({name})")),
            Err(error) => {
                note(format!("{} of a killed run could not be removed: {error}", dir.display()))
            }
        }
    }
    Ok(())
}

/// Ends the tracing of an instance and removes it. Its files may still be held open for a moment, by a reader
/// that has been told to end.
fn remove(dir: &Path) -> io::Result<()> {
    // If these fail, removing does the same.
    let _ = write(&dir.join("tracing_on"), "0");
    let _ = write(&dir.join("events/enable"), "0");
    let mut tries = 0;
    loop {
        match fs::remove_dir(dir) {
            Err(error) if error.kind() == ErrorKind::ResourceBusy && tries < 50 => {
                std::thread::sleep(Duration::from_millis(20));
            }
            result => return result,
        }
        tries += 1;
    }
}

/// Reads a file in large pieces, because some files of tracefs give nothing to a second read.
fn read(path: &Path) -> io::Result<String> {
    let (mut file, mut text, mut piece) = (File::open(path)?, Vec::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(String::from_utf8_lossy(&text).into_owned()),
            bytes => text.extend(&piece[..bytes]),
        }
    }
}

fn write(path: &Path, value: &str) -> io::Result<()> {
    // Files of tracefs are not made by writing to them.
    File::options().write(true).open(path)?.write_all(value.as_bytes())
}

fn names_in(dir: &Path) -> io::Result<Vec<String>> {
    let names =
        fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    names.collect()
}

/// When a process started, in clock ticks since boot; `None` if there is no such process.
fn started_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before the last parenthesis may hold anything; the start is the 20th word behind it.
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}
