// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady trace` of this kernel: while a program or a process runs, for a time, or until Ctrl-C.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use rustix::process::{Pid, Signal, kill_process};
use steadyio_core::diagnostic;
use steadyio_core::interrupt::Interrupt;
use steadyio_trace::event::Dev;
use steadyio_trace::report::words::size_text;
use steadyio_trace::report::words::us;
use steadyio_trace::source::capture::devices::{Stack, names};
use steadyio_trace::source::capture::{Capture, Captured, EndReason, Interval, Options};
use steadyio_trace::source::table::Detail;

use super::arguments::Arguments;
use super::threads;
use crate::exit::{Failure, Status};
use crate::progress::Pace;

/// The interval of checks whether the trace is over.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Traces. Returns the capture, and how it ended.
pub fn trace(
    arguments: &Arguments,
    device: Option<&Stack>,
    stop: &Interrupt,
) -> Result<(Captured, Status), Failure> {
    let keep = arguments.keep.as_deref();
    keep.map(make_folder).transpose().map_err(Failure::with(Status::Usage))?;
    let mut options = Options {
        devices: device.map(|stack| stack.dev).into_iter().collect(),
        detail: if arguments.fine { Detail::Fine } else { Detail::Summary },
        sched: arguments.sched,
        metadata: arguments.calls.is_some(),
        threads: None,
        memory_bytes_max: arguments.memory,
        ring: arguments.ring,
        trigger: arguments.trigger(),
        interval: arguments.interval,
        keep: arguments.keep.clone(),
        ..Options::default()
    };
    let running = || arguments.pid.map(threads::running).transpose();
    if arguments.pid.is_some() {
        threads::refuse_other_namespace().map_err(Failure::with(Status::Usage))?;
    }
    let mut asked_for = running().map_err(Failure::with(Status::Usage))?.unwrap_or_default();
    let some = arguments.pid.is_some() || !arguments.program.is_empty();
    options.threads = (some && !arguments.all).then(|| asked_for.clone());
    let mut note = |text: String| diagnostic!("steady: {text}");
    let mut capture = Capture::start(&options, &mut note).map_err(Failure::with(Status::Failed))?;
    // Threads that were started before tracing began. Events show those started later.
    let later = running().unwrap_or_default().unwrap_or_default();
    capture.add_threads(&later).map_err(Failure::with(Status::Failed))?;
    asked_for.extend(later);
    asked_for.sort_unstable();
    asked_for.dedup();
    let started = spawn(arguments, &mut capture).map_err(Failure::with(Status::Usage))?;
    let (child, number) = started.unzip();
    asked_for.extend(number);
    let ended =
        wait(arguments, child, &mut capture, stop).map_err(Failure::with(Status::Failed))?;
    let captured = capture.stop(&asked_for).map_err(Failure::with(Status::Failed))?;
    if let Some(error) = &captured.not_kept {
        diagnostic!("steady: {error}; nothing is kept, the trace follows");
        return Ok((captured, Status::Failed));
    }
    let status = match ended {
        Ended::Program(status) if !status.success() => {
            diagnostic!("steady: {}: {}", arguments.program[0], words(status));
            Status::Failed
        }
        Ended::Program(_) | Ended::Itself if captured.meta.memory_full => Status::Flawed,
        Ended::Program(_) | Ended::Itself => Status::Done,
        Ended::Interrupted => Status::Interrupted,
    };
    Ok((captured, status))
}

/// Makes the folder, before tracing begins. Fails if it holds a trace already.
fn make_folder(dir: &Path) -> anyhow::Result<()> {
    if Captured::is_folder(dir) {
        bail!("--keep {}: holds a trace already; name another directory", dir.display());
    }
    fs::create_dir_all(dir).with_context(|| format!("--keep {}", dir.display()))
}

/// Starts the program. Returns also its number in events.
fn spawn(arguments: &Arguments, capture: &mut Capture) -> anyhow::Result<Option<(Child, u32)>> {
    let Some((name, rest)) = arguments.program.split_first() else { return Ok(None) };
    let mut command = Command::new(name);
    command.args(rest);
    if arguments.json {
        // Standard output is for the record.
        let stderr = io::stderr().as_fd().try_clone_to_owned();
        command.stdout(Stdio::from(stderr.context("standard error")?));
    }
    Ok(Some(capture.spawn(&mut command).with_context(|| name.clone())?))
}

/// The reason why tracing is over.
enum Ended {
    Program(ExitStatus),
    /// --duration is over, the process has exited, or tracing ended by itself; or Ctrl-C, if
    /// nothing else ends the trace.
    Itself,
    Interrupted,
}

fn wait(
    arguments: &Arguments,
    mut child: Option<Child>,
    capture: &mut Capture,
    stop: &Interrupt,
) -> anyhow::Result<Ended> {
    let (began, mut told) = (Instant::now(), None);
    let names = if arguments.interval.is_some() { names() } else { BTreeMap::new() };
    let (mut since, mut pace) = (began, Pace::new());
    let mut tracing = true;
    loop {
        capture.look_at_files();
        let ended = child.as_mut().map(Child::try_wait).transpose();
        if let Some(status) = ended.context("waiting for the program")?.flatten() {
            // Ctrl-C reaches both processes, and the program may exit first.
            let ended = if stop.requested() { Ended::Interrupted } else { Ended::Program(status) };
            return Ok(told.unwrap_or(ended));
        }
        match (&child, over(arguments, stop, began.elapsed())) {
            (None, Some(ended)) => return Ok(ended),
            (Some(child), Some(ended)) if told.is_none() => {
                // Ctrl-C reaches the program too, but a signal to this process alone does not.
                end(child, Signal::TERM)?;
                told = Some(ended);
                stop.forget();
                (since, pace) = (Instant::now(), Pace::new());
            }
            (Some(child), _) if told.is_some() && stop.requested() => {
                end(child, Signal::KILL)?;
                stop.forget();
            }
            _ => {}
        }
        if tracing && capture.reader.has_ended() {
            tracing = false;
            diagnostic!("steady: {}", why_it_ended(arguments, capture, told.is_some()));
            if child.is_none() {
                return Ok(Ended::Itself);
            }
            (since, pace) = (Instant::now(), Pace::new());
        }
        for figures in capture.reader.intervals() {
            diagnostic::write_text(&interval(began.elapsed(), &figures, &names));
        }
        if arguments.interval.is_none() && pace.is_due(since.elapsed()) {
            let elapsed = since.elapsed();
            diagnostic!("steady: {}", progress(arguments, elapsed, (tracing, told.is_some())));
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// One line per kind of I/O that ended in an interval, or a line for an empty interval.
fn interval(elapsed: Duration, figures: &[Interval], names: &BTreeMap<Dev, String>) -> String {
    let at = format!("{:.1} s", elapsed.as_secs_f64());
    if figures.is_empty() {
        return format!("{at:>9}  no I/O\n");
    }
    let line = |Interval { dev, what, times }: &Interval| {
        let on = dev.map(|dev| names.get(&dev).cloned().unwrap_or_else(|| dev.to_string()));
        let what = on.map_or_else(|| what.to_string(), |on| format!("{on} {what}"));
        let (p50, p99, max) = (us(times.p50_ns), us(times.p99_ns), us(times.max_ns));
        let count = times.count;
        format!("{at:>9}  {what:<24} {count:>8}  p50 {p50:>9}  p99 {p99:>9}  max {max:>9} us\n")
    };
    figures.iter().map(line).collect()
}

/// The message at the end of tracing. If the program still runs, tracing waits for it.
fn why_it_ended(arguments: &Arguments, capture: &Capture, told: bool) -> String {
    let why = match capture.reader.end_reason() {
        Some(EndReason::MemoryFull) => {
            let hint = if arguments.keep.is_none() { "; --keep DIR continues on disk" } else { "" };
            format!("memory ({}) is full: tracing ended early{hint}", size_text(arguments.memory))
        }
        Some(EndReason::Slow(slow)) => format!("tracing ended: {slow}"),
        None => "tracing ended: its reader failed".into(),
    };
    match arguments.program.first() {
        Some(program) if !told => {
            format!("{why}; waiting for {program} to end (Ctrl-C terminates it)")
        }
        _ => why,
    }
}

fn progress(arguments: &Arguments, elapsed: Duration, (tracing, told): (bool, bool)) -> String {
    if !tracing && !told {
        format!("waiting for {} for {} s", arguments.program[0], elapsed.as_secs())
    } else if told {
        format!("{} got SIGTERM and still runs; Ctrl-C again kills it", arguments.program[0])
    } else {
        format!("tracing for {} s", elapsed.as_secs())
    }
}

/// Whether tracing is over, independent of the program. Ctrl-C is the regular end if there is no
/// other.
fn over(arguments: &Arguments, stop: &Interrupt, elapsed: Duration) -> Option<Ended> {
    let has_end = arguments.duration.is_some() || !arguments.program.is_empty();
    if stop.requested() {
        return Some(if has_end { Ended::Interrupted } else { Ended::Itself });
    }
    let time_is_over = arguments.duration.is_some_and(|time| elapsed >= time);
    let process_is_over =
        arguments.program.is_empty() && arguments.pid.is_some_and(|pid| !runs(pid));
    (time_is_over || process_is_over).then_some(Ended::Itself)
}

fn runs(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

fn end(child: &Child, signal: Signal) -> anyhow::Result<()> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| anyhow!("process {}: no such process", child.id()))?;
    kill_process(pid, signal).context("signalling the program")
}

fn words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with status {code}"),
        (_, Some(signal)) => format!("killed by signal {signal}"),
        _ => status.to_string(),
    }
}
