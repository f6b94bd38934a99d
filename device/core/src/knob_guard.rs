// SPDX-License-Identifier: MIT OR Apache-2.0
//! Restores knobs in every case. The bench and `steady with` use it.
//!
//! `take` locks the disk's state file, restores the values that a killed run left in it, and saves
//! every attribute to it. `reset` restores the saved values between variants. `finish` restores
//! them and empties the file; `leave` only empties it. Dropping does the same as `finish`. Only
//! SIGKILL or a power cut leaves values in the file, and the next `take` restores them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

use crate::device::Device;
use crate::diagnostic;
use crate::knobs::{Attributes, KnobError, Queue};

/// The directory of the state files. A reboot resets both them and the knobs.
pub const STATE_DIR: &str = "/run/steadyio/knobs";

/// Knobs could not be saved or restored.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// The state file cannot be used.
    #[error("{}: file with the saved values of the knobs cannot be used", path.display())]
    State { path: PathBuf, source: io::Error },
    /// Only root may access the state file and the knobs.
    #[error("{0}: scheduler and knobs cannot be set (needs root, or CAP_DAC_OVERRIDE)")]
    Privilege(String),
    /// Another run holds the state file.
    #[error("{0}: another run has changed its settings; wait until it ends")]
    Busy(String),
    /// Some knobs kept the values of the run.
    #[error("not restored: {}", .0.iter().map(KnobError::to_string).collect::<Vec<_>>().join("; "))]
    Restore(Vec<KnobError>),
}

/// The saved values while a run has changed them. If it is killed, the next run restores them. A
/// lock allows one run at a time.
#[derive(Debug)]
pub struct StateFile {
    path: PathBuf,
    file: File,
}

impl StateFile {
    /// Locks the file of `name`, and returns it with the values that a killed run left in it.
    pub fn lock(dir: &Path, name: &str) -> Result<(StateFile, Option<Attributes>), GuardError> {
        let path = dir.join(format!("{}.json", name.replace('!', "-")));
        let state_error = |source: io::Error| match source.kind() {
            io::ErrorKind::PermissionDenied => GuardError::Privilege(name.to_string()),
            _ => GuardError::State { path: path.clone(), source },
        };
        fs::create_dir_all(dir).map_err(state_error)?;
        let mut options = OpenOptions::new();
        let mut file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(state_error)?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| GuardError::Busy(name.to_string()))?;
        let left = read_state(&mut file).map_err(state_error)?;
        Ok((StateFile { path, file }, left))
    }

    /// Replaces its contents.
    pub fn write(&mut self, saved: Option<&Attributes>) -> Result<(), GuardError> {
        write_state(&mut self.file, saved)
            .map_err(|source| GuardError::State { path: self.path.clone(), source })
    }
}

/// The previous values of the knobs.
#[derive(Debug)]
pub struct KnobGuard {
    queue: Queue,
    saved: Attributes,
    state: StateFile,
    done: bool,
}

impl KnobGuard {
    /// Saves the knobs of a device's disk. `note` gets a message if those of a killed run were
    /// restored.
    pub fn take(device: &Device, note: &mut dyn FnMut(String)) -> Result<KnobGuard, GuardError> {
        let queue = Queue::new(&device.queue, &device.disk);
        KnobGuard::take_in(Path::new(STATE_DIR), queue, &device.disk, note)
    }

    fn take_in(
        dir: &Path,
        queue: Queue,
        disk: &str,
        note: &mut dyn FnMut(String),
    ) -> Result<KnobGuard, GuardError> {
        let (mut state, left) = StateFile::lock(dir, disk)?;
        if let Some(left) = left {
            let failed = queue.restore(&left);
            if !failed.is_empty() {
                return Err(GuardError::Restore(failed));
            }
            note(format!("{disk}: an earlier run was killed; its knobs have been restored"));
        }
        let saved = queue.snapshot();
        state.write(Some(&saved))?;
        Ok(KnobGuard { queue, saved, state, done: false })
    }

    /// The guarded knobs.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Restores the saved values, and keeps the guard.
    pub fn reset(&self) -> Result<(), GuardError> {
        let failed = self.queue.restore(&self.saved);
        if failed.is_empty() { Ok(()) } else { Err(GuardError::Restore(failed)) }
    }

    /// Keeps the present values, and ends the guard.
    pub fn leave(mut self) -> Result<(), GuardError> {
        // Otherwise the next run would restore the saved values.
        self.state.write(None)?;
        self.done = true;
        Ok(())
    }

    /// Restores the saved values, and ends the guard.
    pub fn finish(mut self) -> Result<(), GuardError> {
        self.done = true;
        self.reset()?;
        // If this fails, the next run restores the same values again.
        let _ = self.state.write(None);
        Ok(())
    }
}

impl Drop for KnobGuard {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        match self.reset() {
            Ok(()) => drop(self.state.write(None)),
            Err(error) => diagnostic!("steady: {error}"),
        }
    }
}

fn read_state(state: &mut File) -> io::Result<Option<Attributes>> {
    let mut text = String::new();
    state.seek(SeekFrom::Start(0))?;
    state.read_to_string(&mut text)?;
    // A truncated file comes from a run that was killed before it changed anything.
    Ok(serde_json::from_str(&text).ok())
}

fn write_state(state: &mut File, saved: Option<&Attributes>) -> io::Result<()> {
    state.seek(SeekFrom::Start(0))?;
    state.set_len(0)?;
    if let Some(saved) = saved {
        serde_json::to_writer(&mut *state, saved)?;
    }
    state.flush()
}
