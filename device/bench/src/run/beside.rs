// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs programs during the jobs of a point: fstrim, deletions, and anything else that fio cannot
//! do. `prepared` starts them.
//!
//! Each is a shell in a separate process group, in the file system's root, with `$STEADY_DEVICE`
//! (node) and `$STEADY_DISK` (name in /sys/block) in its environment. It runs until the point ends.
//! One that ends earlier has failed, because the point was then measured without it.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command as Process, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use steadyio_core::device::Device;

use crate::spec::workload::{Command, Ioprio};

/// A program failed.
#[derive(Debug, thiserror::Error)]
pub enum BesideError {
    #[error("{name} cannot be started")]
    Start {
        /// Name of the command, or `prepare`.
        name: String,
        source: io::Error,
    },
    /// It ended with an error, or before the point.
    #[error("{name} {how}: {said}")]
    Ended {
        /// Name of the command, or `prepare`.
        name: String,
        /// Its exit status.
        how: String,
        said: String,
    },
}

/// The running programs; dropping it ends them.
#[derive(Debug, Default)]
pub struct Beside(Vec<(String, Child)>);

impl Beside {
    pub fn start(
        &mut self,
        command: &Command,
        dir: &Path,
        device: &Device,
    ) -> Result<(), BesideError> {
        let mut process = Process::new("ionice");
        process.args(ionice_arguments(command.ioprio));
        process.args(["sh", "-c", &command.run]);
        environment(&mut process, dir, device).process_group(0).stdout(Stdio::null());
        let child = process
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|source| BesideError::Start { name: command.name.clone(), source })?;
        self.0.push((command.name.clone(), child));
        Ok(())
    }

    /// Ends all of them. Returns an error if one had ended by itself.
    pub fn finish(mut self) -> Result<(), BesideError> {
        for (name, child) in &mut self.0 {
            if let Ok(Some(status)) = child.try_wait() {
                let mut said = String::new();
                if let Some(mut stderr) = child.stderr.take() {
                    let _ = io::Read::read_to_string(&mut stderr, &mut said);
                }
                let (name, how) = (format!("command {name}"), format!("ended early ({status})"));
                return Err(BesideError::Ended { name, how, said: said.trim().into() });
            }
        }
        Ok(())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        for (_, child) in &mut self.0 {
            let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            let _ = group.map(|group| kill_process_group(group, Signal::KILL));
            let _ = child.wait();
        }
    }
}

/// Runs shell commands in `dir` and waits for them.
pub fn run_once(text: &str, dir: &Path, device: &Device) -> Result<(), BesideError> {
    let mut process = Process::new("sh");
    process.args(["-e", "-c", text]);
    let output = environment(&mut process, dir, device)
        .output()
        .map_err(|source| BesideError::Start { name: "prepare".into(), source })?;
    if output.status.success() {
        Ok(())
    } else {
        Err(BesideError::Ended {
            name: "prepare".into(),
            how: format!("failed ({})", output.status),
            said: String::from_utf8_lossy(&output.stderr).trim().into(),
        })
    }
}

fn environment<'p>(process: &'p mut Process, dir: &Path, device: &Device) -> &'p mut Process {
    process
        .current_dir(dir)
        .stdin(Stdio::null())
        .env("STEADY_DEVICE", &device.node)
        .env("STEADY_DISK", &device.disk)
}

fn ionice_arguments(ioprio: Ioprio) -> Vec<String> {
    match ioprio {
        Ioprio::RealTime(level) => vec!["-c1".into(), format!("-n{level}")],
        Ioprio::BestEffort(level) => vec!["-c2".into(), format!("-n{level}")],
        Ioprio::Idle => vec!["-c3".into()],
        Ioprio::None => vec!["-c0".into()],
    }
}
