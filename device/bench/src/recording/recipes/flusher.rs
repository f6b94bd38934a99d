// SPDX-License-Identifier: MIT OR Apache-2.0
//! Switches the kernel's flusher off, and restores it in every case. `session` uses it.
//!
//! As in the ext4 recording paper, the flusher starts only if all memory is dirty or data is older
//! than 3,000 s, so that the recorder alone decides when pages are written. The settings are
//! system-wide, hence the guard; it works as [`steadyio_core::knob_guard`] describes.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use steadyio_core::diagnostic;
use steadyio_core::knob_guard::{STATE_DIR, StateFile};

const VM: &str = "/proc/sys/vm";
/// Written in this order, because setting a ratio sets the bytes to 0, and vice versa.
const OFF: [(&str, &str); 3] = [
    ("dirty_ratio", "100"),
    ("dirty_background_ratio", "100"),
    ("dirty_expire_centisecs", "300000"),
];
/// The settings of the flusher that the result lists.
const SHOWN: [&str; 6] = [
    "dirty_background_bytes",
    "dirty_background_ratio",
    "dirty_bytes",
    "dirty_expire_centisecs",
    "dirty_ratio",
    "dirty_writeback_centisecs",
];

/// The flusher's settings could not be changed or restored.
#[derive(Debug, thiserror::Error)]
pub enum FlusherError {
    /// Another run holds them, or the state file cannot be used.
    #[error(transparent)]
    Guard(#[from] steadyio_core::knob_guard::GuardError),
    /// The kernel rejected a value. Mostly the caller is not root, or a container's /proc/sys is
    /// read-only.
    #[error(
        "{} = {value}: rejected by the kernel: {why} (switching the flusher off needs root and a \
         writable /proc/sys; recipes with the flusher on do not)",
        path.display()
    )]
    Refused { path: PathBuf, value: String, why: io::Error },
}

/// The present settings, without those that the kernel does not have.
pub fn in_force() -> BTreeMap<String, u64> {
    read_all(Path::new(VM))
}

fn read_all(dir: &Path) -> BTreeMap<String, u64> {
    let read = |name: &&str| {
        let text = fs::read_to_string(dir.join(name)).ok()?;
        Some(((*name).to_string(), text.trim().parse().ok()?))
    };
    SHOWN.iter().filter_map(read).collect()
}

/// Keeps the flusher off; dropping it restores the settings.
#[derive(Debug)]
pub struct FlusherOff {
    dir: PathBuf,
    state: StateFile,
    saved: BTreeMap<String, String>,
    done: bool,
}

impl FlusherOff {
    /// Switches the flusher off. `note` gets a message if the settings of a killed run were
    /// restored.
    pub fn take(note: &mut dyn FnMut(String)) -> Result<FlusherOff, FlusherError> {
        FlusherOff::take_in(Path::new(STATE_DIR), Path::new(VM), note)
    }

    fn take_in(
        state_dir: &Path,
        dir: &Path,
        note: &mut dyn FnMut(String),
    ) -> Result<FlusherOff, FlusherError> {
        let (mut state, left) = StateFile::lock(state_dir, "vm")?;
        if let Some(left) = left {
            restore(dir, &left)?;
            note("an earlier run was killed; the flusher's settings have been restored".into());
        }
        let saved = read_all(dir).into_iter().map(|(name, value)| (name, value.to_string()));
        let saved: BTreeMap<String, String> = saved.collect();
        state.write(Some(&saved))?;
        let guard = FlusherOff { dir: dir.to_path_buf(), state, saved, done: false };
        for (name, value) in OFF {
            write(dir, name, value)?;
        }
        Ok(guard)
    }

    /// Restores the settings, and returns errors. Dropping this only prints them.
    pub fn finish(mut self) -> Result<(), FlusherError> {
        self.put_back()
    }

    fn put_back(&mut self) -> Result<(), FlusherError> {
        self.done = true;
        restore(&self.dir, &self.saved)?;
        Ok(self.state.write(None)?)
    }
}

impl Drop for FlusherOff {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        if let Err(error) = self.put_back() {
            diagnostic!("steady: {error}");
        }
    }
}

fn write(dir: &Path, name: &str, value: &str) -> Result<(), FlusherError> {
    let path = dir.join(name);
    fs::write(&path, value).map_err(|why| FlusherError::Refused {
        path,
        value: value.to_string(),
        why,
    })
}

/// Restores the settings. Of each pair of ratio and bytes, one is 0 and the other is in force; that
/// one is written.
fn restore(dir: &Path, saved: &BTreeMap<String, String>) -> Result<(), FlusherError> {
    for (name, value) in saved {
        let one_of_a_pair = name.ends_with("_ratio") || name.ends_with("_bytes");
        if !(one_of_a_pair && value == "0") {
            write(dir, name, value)?;
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Plain files in place of /proc/sys/vm.
    fn settings() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for name in SHOWN {
            fs::write(dir.path().join(name), if name.ends_with("bytes") { "0" } else { "10" })
                .unwrap();
        }
        dir
    }

    #[test]
    fn the_flusher_is_off_while_the_guard_lives() {
        let (state, vm) = (tempfile::tempdir().unwrap(), settings());
        let before = read_all(vm.path());
        let guard = FlusherOff::take_in(state.path(), vm.path(), &mut |_| ()).unwrap();
        let off = read_all(vm.path());
        assert_eq!((off["dirty_background_ratio"], off["dirty_expire_centisecs"]), (100, 300_000));
        assert!(FlusherOff::take_in(state.path(), vm.path(), &mut |_| ()).is_err());
        drop(guard);
        assert_eq!(read_all(vm.path()), before);
    }

    #[test]
    fn what_a_killed_run_left_is_mended() {
        let (state, vm) = (tempfile::tempdir().unwrap(), settings());
        let before = read_all(vm.path());
        let mut guard = FlusherOff::take_in(state.path(), vm.path(), &mut |_| ()).unwrap();
        guard.done = true;
        drop(guard);
        assert_ne!(read_all(vm.path()), before);
        let mut notes = Vec::new();
        let guard = FlusherOff::take_in(state.path(), vm.path(), &mut |note| notes.push(note));
        guard.unwrap().finish().unwrap();
        assert_eq!(notes.len(), 1);
        assert_eq!(read_all(vm.path()), before);
    }
}
