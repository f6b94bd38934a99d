// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady record --live`: runs steady-live, which shows the recording to Foxglove, next to it.
//!
//! It is a process of its own that reads the segments, so whatever happens to it costs the recorder
//! nothing. It ends when its standard input does, thus also after `kill -9` of the recorder. One
//! thread starts it and waits for it; the process inherits the low priority of that thread.

use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, nice, pidfd_open, pidfd_send_signal};
use steadyio_core::diagnostic;
use steadyio_core::interrupt::Interrupt;
use steadyio_core::scheduling::{IO_CLASS_IDLE, leave_real_time, set_io_priority};

const PROGRAM: &str = "steady-live";
/// A busy machine may take long to start Python at a low priority.
const START_TIME: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Then it is killed.
const END_TIME: Duration = Duration::from_secs(3);
/// Then it is left alone: a device that fails can hold it for long.
const KILL_TIME: Duration = Duration::from_secs(1);
const NICE: i32 = 10;

/// What the thread reports.
enum Event {
    Started(ChildStdin, OwnedFd),
    NotStarted(io::Error),
    /// The program's first line: it listens.
    Listening(String),
}

/// The running program; dropping it ends it.
pub struct Viewer {
    stdin: Option<ChildStdin>,
    process: OwnedFd,
    ending: Arc<AtomicBool>,
    events: Receiver<Event>,
    thread: Option<JoinHandle<()>>,
}

impl Viewer {
    /// Returns when it listens. A program that cannot start has printed the reason.
    pub fn start(dir: &Path, listen: &str, stop: &Interrupt) -> anyhow::Result<Viewer> {
        let mut command = Command::new(PROGRAM);
        command.arg(dir).args(["--listen", listen, "--until-eof"]);
        // Ctrl-C is for the recorder, and so is systemd's socket.
        command.env_remove("NOTIFY_SOCKET").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let (tell, events) = channel();
        let ending = Arc::new(AtomicBool::new(false));
        let is_ending = Arc::clone(&ending);
        let thread = Builder::new().name("steady-viewer".into());
        let thread = thread.spawn(move || run(command, &tell, &is_ending))?;
        let (stdin, process) = match events.recv().context("the thread of the viewer ended")? {
            Event::Started(stdin, process) => (Some(stdin), process),
            Event::NotStarted(error) if error.kind() == io::ErrorKind::NotFound => {
                bail!("{PROGRAM} is not in $PATH: install it with pip install 'steadyio[live]'")
            }
            Event::NotStarted(error) => bail!("{PROGRAM} cannot be started: {error}"),
            Event::Listening(line) => bail!("{PROGRAM} says {line:?} before it starts"),
        };
        let viewer = Viewer { stdin, process, ending, events, thread: Some(thread) };
        diagnostic!("steady: live view: {}", viewer.listening(stop)?);
        Ok(viewer)
    }

    fn listening(&self, stop: &Interrupt) -> anyhow::Result<String> {
        let started = Instant::now();
        loop {
            match self.events.recv_timeout(LOOK_EVERY) {
                Ok(Event::Listening(line)) => return Ok(line),
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    bail!("{PROGRAM} ended before it listened (it said why above)")
                }
                Err(RecvTimeoutError::Timeout) if stop.requested() => bail!("interrupted"),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if started.elapsed() > START_TIME {
                bail!("{PROGRAM} did not listen within {START_TIME:?}: is the machine too busy?");
            }
        }
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        self.stdin = None;
        let started = Instant::now();
        while let Ok(_) | Err(RecvTimeoutError::Timeout) = self.events.recv_timeout(LOOK_EVERY) {
            if started.elapsed() > END_TIME + KILL_TIME {
                return;
            }
            if started.elapsed() > END_TIME {
                // The thread has not waited for it yet, or the signal goes nowhere.
                let _ = pidfd_send_signal(&self.process, Signal::KILL);
            }
        }
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed.
            let _ = thread.join();
        }
    }
}

/// Runs the program to its end.
fn run(mut command: Command, tell: &Sender<Event>, ending: &AtomicBool) {
    // The starting thread waits for this.
    let mut child = match start(&mut command) {
        Ok((child, stdin, process)) => {
            let _ = tell.send(Event::Started(stdin, process));
            child
        }
        Err(error) => {
            let _ = tell.send(Event::NotStarted(error));
            return;
        }
    };
    let mut listened = false;
    // Its output ends when it does.
    for line in child.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines) {
        let Ok(line) = line else { break };
        listened = true;
        let _ = tell.send(Event::Listening(line));
    }
    let ended = child.wait();
    if listened && !ending.load(Ordering::Relaxed) {
        let how = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
        diagnostic!("steady: the live view has ended ({how}); recording goes on");
    }
}

fn start(command: &mut Command) -> io::Result<(Child, ChildStdin, OwnedFd)> {
    leave_real_time()?;
    nice(NICE)?;
    set_io_priority(IO_CLASS_IDLE, 0)?;
    let mut child = command.spawn()?;
    let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
    match (child.stdin.take(), process) {
        (Some(stdin), Ok(process)) => Ok((child, stdin, process)),
        (_, process) => {
            child.kill()?;
            child.wait()?;
            Err(process.map_or_else(io::Error::from, |_| io::Error::other("it has no input")))
        }
    }
}
