// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds fio, runs it, and ends it. `run` calls it.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use steadyio_core::interrupt::Interrupt;

use crate::fio::job::{job_file_path, started_path};
use crate::fio::output::{self, JobOutput, OutputError};
use crate::fio::virtual_time;

/// The oldest fio that the job files were checked with.
const VERSION_MIN: (u32, u32) = (3, 33);
/// The interval of checks whether fio has ended, and whether it should.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The interval of checks whether the jobs of a point have started.
const STARTED_EVERY: Duration = Duration::from_millis(1);
/// The time that fio has to finish its last I/Os after a stop.
const STOP_GRACE: Duration = Duration::from_secs(10);

/// fio is missing, too old, or failed.
#[derive(Debug, thiserror::Error)]
pub enum FioError {
    /// No fio in PATH.
    #[error("fio is not in PATH: install it (apt-get install fio)")]
    Missing,
    /// The version is below the minimum, or missing.
    #[error(
        "{}: version \"{version}\", must be fio-{}.{} or newer",
        path.display(), VERSION_MIN.0, VERSION_MIN.1
    )]
    Version {
        /// The path of fio.
        path: PathBuf,
        version: String,
    },
    #[error("{what}")]
    Io { what: String, source: io::Error },
    /// A job could not start or continue.
    #[error("fio failed ({status}): {said}")]
    Failed { status: String, said: String },
    /// The result could not be parsed.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// Ctrl-C or another signal.
    #[error("interrupted")]
    Interrupted,
}

/// An installed fio.
#[derive(Debug, Clone)]
pub struct Fio {
    path: PathBuf,
    /// The version, as fio prints it, for example `fio-3.33`.
    pub version: String,
}

fn version_number(version: &str) -> Option<(u32, u32)> {
    let (major, rest) = version.strip_prefix("fio-")?.split_once('.')?;
    let minor: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn io_error(what: String) -> impl FnOnce(io::Error) -> FioError {
    move |source| FioError::Io { what, source }
}

impl Fio {
    /// The first fio in PATH, if it is new enough.
    pub fn find() -> Result<Fio, FioError> {
        let paths = env::var_os("PATH").unwrap_or_default();
        let path = env::split_paths(&paths)
            .map(|dir| dir.join("fio"))
            .find(|path| path.is_file())
            .ok_or(FioError::Missing)?;
        let output = Command::new(&path)
            .arg("--version")
            .output()
            .map_err(io_error(format!("{} --version", path.display())))?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_string();
        match version_number(&version) {
            Some(number) if number >= VERSION_MIN => Ok(Fio { path, version }),
            _ => Err(FioError::Version { path, version }),
        }
    }

    /// Runs a job file in `dir`. While waiting it calls `tick` with the time since the start.
    pub fn run(
        &self,
        job_file: &str,
        dir: &Path,
        stop: &Interrupt,
        tick: &mut dyn FnMut(Duration),
    ) -> Result<BTreeMap<String, JobOutput>, FioError> {
        let mut run = self.start(job_file, dir)?;
        let status = loop {
            match run.look(stop)? {
                Some(status) => break status,
                None => tick(run.started.elapsed()),
            }
            thread::sleep(LOOK_EVERY);
        };
        run.result(status.to_string())
    }

    /// Starts a job file in `dir`. Dropping the returned run ends the process.
    pub fn start(&self, job_file: &str, dir: &Path) -> Result<Run, FioError> {
        let path = job_file_path(dir);
        fs::write(&path, job_file).map_err(io_error(path.display().to_string()))?;
        let files = Files { dir: dir.to_path_buf(), output: dir.join("fio.json") };
        let child = files.start(self)?;
        Ok(Run { files, child, started: Instant::now() })
    }
}

/// A running fio process.
#[derive(Debug)]
pub struct Run {
    files: Files,
    child: Child,
    started: Instant,
}

impl Run {
    /// The exit status, if it has ended. Returns an error if it must not continue.
    fn look(&mut self, stop: &Interrupt) -> Result<Option<ExitStatus>, FioError> {
        if let Some(status) = self.child.try_wait().map_err(io_error("fio".into()))? {
            return Ok(Some(status));
        }
        if stop.requested() {
            self.end();
            return Err(FioError::Interrupted);
        }
        if self.files.a_job_died() {
            let status = self.end();
            return Err(self.files.failed(status));
        }
        Ok(None)
    }

    /// Returns an error if it has ended, or must not continue.
    pub fn check_goes_on(&mut self, stop: &Interrupt) -> Result<(), FioError> {
        match self.look(stop)? {
            Some(status) => Err(self.files.failed(status.to_string())),
            None => Ok(()),
        }
    }

    /// Returns when the jobs of the point start. The job file must make them report it: see
    /// [`crate::fio::job`].
    pub fn wait_until_started(&mut self, stop: &Interrupt) -> Result<(), FioError> {
        while !started_path(&self.files.dir).exists() {
            self.check_goes_on(stop)?;
            thread::sleep(STARTED_EVERY);
        }
        Ok(())
    }

    /// Ends its jobs, and returns their results until then.
    pub fn finish(mut self) -> Result<BTreeMap<String, JobOutput>, FioError> {
        let status = self.end();
        self.result(status)
    }

    fn result(&self, status: String) -> Result<BTreeMap<String, JobOutput>, FioError> {
        match output::parse(&self.files.read("fio.json")) {
            Ok(jobs) => Ok(jobs),
            Err(OutputError::Missing(_)) => Err(self.files.failed(status)),
            Err(error) => Err(error.into()),
        }
    }

    /// Asks it to stop, then kills it. Returns its exit status in words.
    fn end(&mut self) -> String {
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let tell = |signal| group.map(|group| kill_process_group(group, signal));
        tell(Signal::INT);
        let asked = Instant::now();
        while asked.elapsed() < STOP_GRACE {
            if let Ok(Some(status)) = self.child.try_wait() {
                return status.to_string();
            }
            thread::sleep(LOOK_EVERY);
        }
        tell(Signal::KILL);
        self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string())
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.end();
        }
    }
}

/// The files of one fio process.
#[derive(Debug)]
struct Files {
    dir: PathBuf,
    output: PathBuf,
}

impl Files {
    fn start(&self, fio: &Fio) -> Result<Child, FioError> {
        let log_path = self.dir.join("fio.log");
        let log = File::create(&log_path).map_err(io_error(log_path.display().to_string()))?;
        let mut command = Command::new(&fio.path);
        command
            .arg("--output-format=json+")
            .arg(format!("--output={}", self.output.display()))
            .args(["--eta=never", "--disk_util=0"])
            .arg(job_file_path(&self.dir))
            .current_dir(&self.dir)
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(io_error(log_path.display().to_string()))?)
            .stderr(log)
            // A separate group: Ctrl-C would otherwise reach fio directly, but only this process
            // may end it.
            .process_group(0);
        die_with_parent(&mut command);
        let child = command.spawn().map_err(io_error(fio.path.display().to_string()))?;
        if virtual_time::is_virtual() {
            virtual_time::skip_calibration(&child);
        }
        Ok(child)
    }

    fn read(&self, name: &str) -> String {
        let bytes = fs::read(self.dir.join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// fio's messages without its result.
    fn messages(&self) -> String {
        let output = self.read("fio.json");
        let before = output.split("\n{").next().unwrap_or_default();
        let before = if before.starts_with('{') { "" } else { before };
        format!("{}\n{before}", self.read("fio.log")).trim().to_string()
    }

    fn failed(&self, status: String) -> FioError {
        FioError::Failed { status, said: self.messages() }
    }

    /// Whether a job died. fio continues without a job that fails to start, so the jobs that it
    /// should end would run on. Errors of single I/Os are only counted and do not show here.
    fn a_job_died(&self) -> bool {
        let size = fs::metadata(&self.output).map(|meta| meta.len()).unwrap_or_default();
        size > 0 && self.messages().contains("err=")
    }
}

/// Makes fio die with this process, so that it does not keep loading the device.
fn die_with_parent(command: &mut Command) {
    let set = || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        Ok(())
    };
    // SAFETY: runs between fork and exec; one prctl system call, no allocation, no lock.
    unsafe { command.pre_exec(set) };
}
