// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flight recorder of `steady watch --traces`: traces in bounded memory. When k2 reports a late
//! real-time request, it keeps the last seconds before that, prints one line about the request and
//! its causes, and begins again.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{fs, io};

use anyhow::{Context, ensure};
use steadyio_core::diagnostic;
use steadyio_trace::event::Dev;
use steadyio_trace::source::capture::{Capture, Captured, EndReason, Options, Slow, Trigger};

use crate::trace::late;

/// The interval of checks for a late request.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The handle of the thread that traces.
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
    /// Keeps traces as `folder/late-N`, until the folder holds `max`. It traces `devices`; all if
    /// empty. It fails if this kernel cannot be traced, or has no k2.
    pub fn start(
        folder: &Path,
        max: u64,
        memory_bytes_max: u64,
        devices: Vec<Dev>,
    ) -> anyhow::Result<FlightRecorder> {
        // Threads are not traced, because that would slow all system calls of all programs.
        let threads = Some(Vec::new());
        let trigger = Some(Trigger::Late);
        let options = Options { devices, threads, memory_bytes_max, trigger, ..Options::default() };
        let traces = Traces { options, folder: folder.into(), max };
        let (kept, number) = traces_in(folder).with_context(|| folder.display().to_string())?;
        ensure!(
            kept < max,
            "{}: holds {kept} traces, the maximum is {max} (remove some, or raise --traces-max)",
            folder.display()
        );
        let first = traces.begin(number)?;
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let (said_here, said) = channel();
        let end = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&end);
        let thread = thread::Builder::new()
            .name("flight".into())
            .spawn(move || traces.go_on(first, numbers(number, max - kept), &ends, &said_here))?;
        Ok(FlightRecorder { thread: Some(thread), end, said })
    }

    /// New messages: late requests, and the error if it has ended.
    pub fn said(&self) -> impl Iterator<Item = String> {
        self.said.try_iter()
    }
}

impl Drop for FlightRecorder {
    /// Removes the rest of a trace in progress.
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

    fn begin(&self, number: u64) -> io::Result<Capture> {
        let options = Options { keep: Some(self.place(number)), ..self.options.clone() };
        Capture::start(&options, &mut |note| diagnostic!("steady: {note}"))
    }

    /// Traces and keeps one trace after the other. `first` is running already, and becomes the
    /// first of `numbers`.
    fn go_on(
        &self,
        first: Capture,
        mut numbers: Range<u64>,
        end: &AtomicBool,
        said: &Sender<String>,
    ) {
        let mut capture = first;
        let why = loop {
            let slow = match wait(&capture, end) {
                None => return,
                Some(Ended::Late(slow)) => slow,
                Some(Ended::Early(why)) => break why.to_owned(),
            };
            match capture.stop(&[]) {
                Ok(captured) => {
                    let _ = said.send(self.in_words(&captured, &slow, numbers.start));
                }
                Err(error) => break error.to_string(),
            }
            numbers.start += 1;
            if numbers.is_empty() {
                break format!("{} traces are kept, and no more", self.max);
            }
            capture = match self.begin(numbers.start) {
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

/// The numbers of this many traces.
fn numbers(first: u64, count: u64) -> Range<u64> {
    first..first.saturating_add(count)
}

/// The number of traces in a folder, and the next free number.
fn traces_in(folder: &Path) -> io::Result<(u64, u64)> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((0, 1)),
        entries => entries?,
    };
    let number_of = |entry: io::Result<fs::DirEntry>| {
        entry.ok()?.file_name().to_str()?.strip_prefix("late-")?.parse::<u64>().ok()
    };
    let numbers: Vec<u64> = entries.filter_map(number_of).collect();
    let last = numbers.iter().max().copied().unwrap_or(0);
    Ok((numbers.len() as u64, last.saturating_add(1)))
}

/// The end of a trace.
enum Ended {
    Late(Slow),
    Early(&'static str),
}

/// Waits for the end; `None` if the thread must end.
fn wait(capture: &Capture, end: &AtomicBool) -> Option<Ended> {
    while !capture.reader.has_ended() {
        if end.load(Ordering::Relaxed) {
            return None;
        }
        thread::sleep(LOOK_EVERY);
    }
    Some(match capture.reader.end_reason() {
        Some(EndReason::Slow(slow)) => Ended::Late(slow),
        Some(EndReason::MemoryFull) => Ended::Early("its memory is full"),
        None => Ended::Early("its reader failed"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_traces_as_there_are_numbers_may_be_kept() {
        assert_eq!(numbers(3, 2), 3..5);
        assert_eq!(numbers(1, u64::MAX), 1..u64::MAX);
    }

    #[test]
    fn new_traces_are_numbered_behind_those_that_are_left() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        assert_eq!(traces_in(&folder.path().join("none"))?, (0, 1));
        for name in ["late-3", "late-20", "late-x", "other"] {
            fs::create_dir(folder.path().join(name))?;
        }
        assert_eq!(traces_in(folder.path())?, (2, 21));
        Ok(())
    }
}
