// SPDX-License-Identifier: MIT OR Apache-2.0
//! Access to the kernel's tracing files, and a guard that owns an instance in them. `capture` uses
//! it.
//!
//! An instance has its own buffers, clock and set of enabled events, so other tracing is not
//! disturbed. `create` makes the instance, and dropping the guard removes it. Only after SIGKILL
//! does it stay; `remove_leftovers` of the next run removes it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::fd::{AsRawFd, OwnedFd};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};
use steadyio_core::diagnostic;

use super::pid_namespace;

/// The prefix of the names of our instances. The process and its start time follow.
const PREFIX: &str = "steady-";
const TRACEFS_MAGIC: u64 = 0x7472_6163;

/// The prefix for this process. It contains the PID namespace, unless that is the initial one: only
/// a run in the same namespace can find out whether the process is gone.
fn prefix() -> String {
    let namespace = pid_namespace::other_than_initial();
    namespace.map_or(PREFIX.into(), |number| format!("{PREFIX}in-{number}-"))
}

/// Adds the file, and the value that could not be written, to an error.
fn failed<'a>(path: &'a Path, value: &'a str) -> impl Fn(io::Error) -> io::Error + 'a {
    move |error| {
        let (path, kind) = (path.display(), error.kind());
        let what = match kind {
            ErrorKind::PermissionDenied => format!(
                "{path} may be used by root only: run as root, or trace with another tool and give its file"
            ),
            _ if value.is_empty() => format!("{path}: {error}"),
            _ => format!("{path}: {value:?}: {error}"),
        };
        io::Error::new(kind, what)
    }
}

#[derive(Debug)]
pub struct Tracefs {
    pub root: PathBuf,
    /// A mount without a place in the file system. Closing it unmounts.
    _mount: Option<OwnedFd>,
}

impl Tracefs {
    /// The mounted tracefs, or else one mounted for this process only.
    pub fn find() -> io::Result<Tracefs> {
        for root in ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"].map(PathBuf::from) {
            match rustix::fs::statfs(&root) {
                Ok(found) if u64::try_from(found.f_type) == Ok(TRACEFS_MAGIC) => {
                    return Ok(Tracefs { root, _mount: None });
                }
                Err(error @ rustix::io::Errno::ACCESS) => {
                    return Err(failed(&root, "")(error.into()));
                }
                _ => {}
            }
        }
        Tracefs::mount()
    }

    /// Mounts tracefs for this process only.
    pub fn mount() -> io::Result<Tracefs> {
        let mount = mount().map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied => failed(Path::new("tracefs"), "")(error),
            kind => io::Error::new(kind, format!(
                "the kernel has no tracefs ({error}): it needs CONFIG_TRACING and, for I/O, CONFIG_BLK_DEV_IO_TRACE"
            )),
        })?;
        let root = format!("/proc/self/fd/{}", mount.as_raw_fd()).into();
        Ok(Tracefs { root, _mount: Some(mount) })
    }

    /// Removes the instances of processes that are gone; `note` receives a message for each.
    pub fn remove_leftovers(&self, note: &mut dyn FnMut(String)) -> io::Result<()> {
        let (instances, prefix) = (self.root.join("instances"), prefix());
        for name in names_in(&instances)? {
            let name_of_ours = name.strip_prefix(&prefix).unwrap_or_default();
            let mut parts = name_of_ours.split('-').map(str::parse::<u64>);
            let (Some(Ok(pid)), Some(Ok(started))) = (parts.next(), parts.next()) else { continue };
            // A process ID may have been reused. The start time shows that.
            if u32::try_from(pid).ok().and_then(started_ticks) == Some(started) {
                continue;
            }
            let dir = instances.join(&name);
            note(match remove(&dir) {
                Ok(()) => format!("removed the tracefs instance of a killed run ({name})"),
                Err(error) => {
                    format!("{} of a killed run could not be removed: {error}", dir.display())
                }
            });
        }
        Ok(())
    }
}

/// Creates a mount that no other process sees.
fn mount() -> io::Result<OwnedFd> {
    let context = rustix::mount::fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_create(&context)?;
    let flags = FsMountFlags::FSMOUNT_CLOEXEC;
    Ok(rustix::mount::fsmount(&context, flags, MountAttrFlags::empty())?)
}

/// An instance that this process owns. Dropping it ends its tracing and removes it.
#[derive(Debug)]
pub struct Instance {
    dir: PathBuf,
    _tracefs: Tracefs,
}

impl Instance {
    /// Creates an instance that traces nothing yet.
    pub fn create(tracefs: Tracefs) -> io::Result<Instance> {
        let pid = std::process::id();
        let started = started_ticks(pid).unwrap_or_default();
        // One process may trace twice at a time, as tests do.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}{pid}-{started}-{number}", prefix());
        let dir = tracefs.root.join("instances").join(name);
        fs::create_dir(&dir).map_err(failed(&dir, ""))?;
        let instance = Instance { dir, _tracefs: tracefs };
        instance.write("tracing_on", "0")?;
        Ok(instance)
    }

    /// The path of a file or folder of the instance.
    pub fn path(&self, file: &str) -> PathBuf {
        self.dir.join(file)
    }

    pub fn read(&self, file: &str) -> io::Result<String> {
        let path = self.path(file);
        read(&path).map_err(failed(&path, ""))
    }

    /// Writes a value to a file of the instance, in one call.
    pub fn write(&self, file: &str, value: &str) -> io::Result<()> {
        let path = self.path(file);
        write(&path, value).map_err(failed(&path, value))
    }

    /// The CPUs for which the instance has buffers.
    pub fn cpus(&self) -> io::Result<BTreeSet<u32>> {
        let names = names_in(&self.path("per_cpu"))?;
        let number = |name: &String| name.strip_prefix("cpu")?.parse().ok();
        Ok(names.iter().filter_map(number).collect())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.dir) {
            diagnostic!("steady: {} could not be removed: {error}", self.dir.display());
        }
    }
}

/// Ends the tracing of an instance and removes it. A reader that is about to end may hold its files
/// open for a moment.
fn remove(dir: &Path) -> io::Result<()> {
    // If these writes fail, removing the instance ends the tracing too.
    let _ = write(&dir.join("tracing_on"), "0");
    let _ = write(&dir.join("events/enable"), "0");
    for _ in 0..50 {
        match fs::remove_dir(dir) {
            Err(error) if error.kind() == ErrorKind::ResourceBusy => {
                std::thread::sleep(Duration::from_millis(20));
            }
            result => return result,
        }
    }
    fs::remove_dir(dir)
}

/// Reads a file in large pieces, because some files of tracefs return nothing to a second read.
fn read(path: &Path) -> io::Result<String> {
    let file = BufReader::with_capacity(1 << 16, File::open(path)?);
    let text = file.bytes().collect::<io::Result<Vec<u8>>>()?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn write(path: &Path, value: &str) -> io::Result<()> {
    // Writing must not create a file in tracefs.
    File::options().write(true).open(path)?.write_all(value.as_bytes())
}

fn names_in(dir: &Path) -> io::Result<Vec<String>> {
    let name =
        |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
    fs::read_dir(dir).and_then(|names| names.map(name).collect()).map_err(failed(dir, ""))
}

/// The start time of a process, in clock ticks since boot; `None` if there is no such process.
fn started_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, up to the last parenthesis, may contain any text. The start time is the 20th word
    // after it.
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}
