// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flight recorder: traces in bounded memory, and when k2 says that a real-time request was late, keeps the last
//! seconds before that, says in one line which request it was and why, and begins anew.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{fs, io};

use anyhow::{Context, ensure};
use steadyio_trace::event::Dev;
use steadyio_trace::source::capture::{Capture, Captured, EndReason, Options, Slow, Trigger};

use crate::trace::late;

/// Between two looks whether a request was late.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The thread that traces, from outside.
pub struct FlightRecorder {
    thread: Option<JoinHandle<()>>,
    end: Arc<AtomicBool>,
    said: Receiver<String>,
}

struct Traces {
    options: Options,
    folder: PathBuf,
    max: u64,
}

impl FlightRecorder {
    /// Keeps up to `max` traces as `folder/late-N`. `devices`: of these; of all if empty. Fails if this kernel cannot be
    /// traced, or k2 is not there.
    pub fn start(
        folder: &Path,
        max: u64,
        memory_bytes_max: u64,
        devices: Vec<Dev>,
    ) -> anyhow::Result<FlightRecorder> {
        // No thread's calls: that would slow all calls of all programs.
        let threads = Some(Vec::new());
        let trigger = Some(Trigger::Late);
        let options = Options { devices, threads, memory_bytes_max, trigger, ..Options::default() };
        let traces = Traces { options, folder: folder.into(), max };
        let number = traces.first_number()?;
        ensure!(
            number <= max,
            "{} holds {max} traces already, and no more are kept: remove some, or raise --traces-max",
            folder.display()
        );
        let first = traces.begin(number)?;
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let (said_here, said) = channel();
        let end = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&end);
        let thread = thread::Builder::new()
            .name("flight".into())
            .spawn(move || traces.go_on(first, number, &ends, &said_here))?;
        Ok(FlightRecorder { thread: Some(thread), end, said })
    }

    /// What is new: late requests, and why it has ended, if it has.
    pub fn said(&self) -> impl Iterator<Item = String> {
        self.said.try_iter()
    }
}

impl Drop for FlightRecorder {
    /// Nothing of a trace in progress is left.
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Traces {
    fn place(&self, number: u64) -> PathBuf {
        self.folder.join(format!("late-{number}"))
    }

    /// Behind those of earlier watches.
    fn first_number(&self) -> anyhow::Result<u64> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(1),
            entries => entries.with_context(|| self.folder.display().to_string())?,
        };
        let number_of = |entry: io::Result<fs::DirEntry>| {
            entry.ok()?.file_name().to_str()?.strip_prefix("late-")?.parse::<u64>().ok()
        };
        Ok(entries.filter_map(number_of).max().map_or(1, |last| last.saturating_add(1)))
    }

    fn begin(&self, number: u64) -> io::Result<Capture> {
        let options = Options { keep: Some(self.place(number)), ..self.options.clone() };
        Capture::start(&options, &mut |note| eprintln!("steady: {note}"))
    }

    fn go_on(&self, first: Capture, mut number: u64, end: &AtomicBool, said: &Sender<String>) {
        let mut capture = first;
        let why = loop {
            let Some(reason) = wait(&capture, end) else { return };
            let EndReason::Slow(slow) = reason else { break format!("{reason:?}") };
            match capture.stop(&[]) {
                Ok(captured) => {
                    let _ = said.send(self.in_words(&captured, &slow, number));
                }
                Err(error) => break error.to_string(),
            }
            number += 1;
            if number > self.max {
                break format!("{} traces are kept, and no more", self.max);
            }
            capture = match self.begin(number) {
                Ok(capture) => capture,
                Err(error) => break error.to_string(),
            };
        };
        let _ = said.send(format!("tracing for late requests has ended: {why}"));
    }

    fn in_words(&self, captured: &Captured, slow: &Slow, number: u64) -> String {
        let place = match &captured.not_kept {
            Some(error) => error.to_string(),
            None => format!("trace in {}", self.place(number).display()),
        };
        format!("{}; {place}", late::in_words(captured, slow))
    }
}

/// Why the trace ended by itself; `None`: it is to end.
fn wait(capture: &Capture, end: &AtomicBool) -> Option<EndReason> {
    loop {
        if end.load(Ordering::Relaxed) {
            return None;
        }
        if let Some(reason) = capture.reader.end_reason() {
            return Some(reason);
        }
        thread::sleep(LOOK_EVERY);
    }
}
