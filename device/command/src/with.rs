// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady with`: runs a program with other knobs of a device, and restores them. Users call it,
//! and `steady-lab run` for figures that measure an application or a recording.
//!
//! It is for loads that fio cannot imitate: a database, a compiler, a whole test suite. The knobs
//! are set and restored by the same code as in `steady bench`, and the record has the same form.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::thread;
use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, kill_process};
use steadyio_bench::program::Program;
use steadyio_bench::program::source::ClassSource;
use steadyio_bench::spec::workload::Class;
use steadyio_core::declared::{Declared, NODE, Task};
use steadyio_core::device::Device;
use steadyio_core::diagnostic;
use steadyio_core::interrupt::Interrupt;
use steadyio_core::knob_guard::KnobGuard;
use steadyio_core::knobs::{KnobReading, knob_attribute};
use steadyio_core::kworkers::{self, Raised, Threads};
use steadyio_core::scheduling::{IO_CLASS_REAL_TIME, set_io_priority};
use steadyio_core::value::Value;

use crate::record_file::RecordFile;

/// The interval of checks whether the program has ended, and whether it should.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The status of failures of `steady` itself, as for `env` and `timeout`.
const STATUS_OWN: u8 = 125;
/// The status of a program that signal N killed is 128 + N, as in a shell.
const STATUS_SIGNAL: i32 = 128;

const HELP: &str = "Exit status: status of the program; 128 + N if signal N ended it; 125 if it \
was not run, the record could not be made, or the knobs could not be restored. Ctrl-C \
restores them, too.";

/// Run a program with temporary settings of a block device
///
/// Sets the scheduler and queue settings, runs the program, and restores the settings when it ends.
/// With --declare, k2 guards the program's real-time requests from the first one on.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Arguments {
    /// Block device, for example mmcblk0
    #[arg(long, value_name = "DEV")]
    device: PathBuf,
    /// Setting, for example scheduler=k2 or iosched/split_kib=4 (repeatable)
    #[arg(long, value_name = "KEY=VALUE", value_parser = knob)]
    knob: Vec<(String, Value)>,
    /// Declare a real-time task of the program to k2, for example
    /// level=0,period_us=10000,block_us=440 (repeatable; keys as in /dev/k2). With one task the
    /// program gets its I/O priority. Without other options the program replaces steady
    #[arg(long, value_name = "TASK")]
    declare: Vec<Task>,
    /// Raise the kernel threads that complete the disk's requests to SCHED_FIFO at PRIORITY while
    /// the program runs: a card's workers, and interrupt threads (PREEMPT_RT)
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(1..=99))]
    kworkers_fifo: Option<u8>,
    /// Write JSON to FILE (a bench record), unless the program fails
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Name of the settings in the record
    #[arg(long, value_name = "NAME", default_value = "with", requires = "out")]
    variant: String,
    /// Class of the record, rt or bg, from a file that the program leaves, for example
    /// rt=sysbench:sysbench.txt or 'bg=dd:dd-*.txt' (repeatable). Formats: sysbench, dd (or
    /// dd,op=WORD,bs_kib=N), recording and recording-changes (both of steady record --out)
    #[arg(long, value_name = "CLASS=FORMAT:FILE", requires = "out")]
    class: Vec<ClassSource>,
    /// Program and its arguments, after --
    #[arg(required = true, last = true, value_name = "PROGRAM")]
    program: Vec<String>,
}

/// Parses `KEY=VALUE`.
pub fn knob(text: &str) -> Result<(String, Value), String> {
    let (key, value) = text.split_once('=').ok_or("must be KEY=VALUE")?;
    match knob_attribute(key) {
        Some(_) if !value.is_empty() => Ok((key.to_string(), Value::from_text(value))),
        Some(_) => Err("the value is missing".into()),
        None => Err("the key must be scheduler, iosched/NAME or queue/NAME".into()),
    }
}

pub fn run(arguments: &Arguments) -> ExitCode {
    match run_with_knobs(arguments) {
        Ok(status) => status,
        Err(error) => {
            diagnostic!("steady: {error:#}");
            ExitCode::from(STATUS_OWN)
        }
    }
}

fn run_with_knobs(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let knobs = unique(&arguments.knob)?;
    refuse_twice(&arguments.class)?;
    if let Some(out) = &arguments.out {
        RecordFile::check(out).with_context(|| named(out))?;
    }
    let device = Device::open(&arguments.device)?;
    if is_only_declared(arguments) {
        return Err(replace_with(arguments, &device));
    }
    if let Some(note) = device.disk_note().filter(|_| !knobs.is_empty()) {
        diagnostic!("steady: {note}");
    }
    let stop = Interrupt::on_signals()?;
    let guard = KnobGuard::take(&device, &mut |text| diagnostic!("steady: {text}"))?;
    let raised = arguments.kworkers_fifo.map(|priority| raise(&device, priority)).transpose()?;
    let (readings, _) = guard.queue().apply("", &knobs, &BTreeSet::new())?;
    let status = run_program(arguments, &device, &stop, raised)?;
    match &arguments.out {
        Some(_) if !status.success() => diagnostic!("steady: the program failed: no record"),
        Some(out) => write_record(arguments, out, &device, readings, &guard)?,
        None => {}
    }
    guard.finish()?;
    Ok(exit_code(status))
}

fn is_only_declared(arguments: &Arguments) -> bool {
    let Arguments { declare, knob, kworkers_fifo, out, .. } = arguments;
    !declare.is_empty() && knob.is_empty() && kworkers_fifo.is_none() && out.is_none()
}

fn named(out: &Path) -> String {
    format!("--out {}", out.display())
}

fn unique(knobs: &[(String, Value)]) -> anyhow::Result<BTreeMap<String, Value>> {
    let map: BTreeMap<String, Value> = knobs.iter().cloned().collect();
    if map.len() == knobs.len() { Ok(map) } else { Err(anyhow!("--knob: a key is given twice")) }
}

fn refuse_twice(classes: &[ClassSource]) -> anyhow::Result<()> {
    let different: BTreeSet<Class> = classes.iter().map(|source| source.class).collect();
    ensure!(different.len() == classes.len(), "--class: a class is given twice");
    Ok(())
}

fn raise(device: &Device, priority: u8) -> anyhow::Result<Raised> {
    let threads = Threads::of(Path::new("/sys"), &device.disk);
    ensure!(threads.exist()?, "--kworkers-fifo: {}: {}", device.disk, kworkers::NONE);
    Raised::new(threads, priority).with_context(|| {
        format!("--kworkers-fifo {priority}: the kernel's threads (needs root, or CAP_SYS_NICE)")
    })
}

/// Replaces this process by the program, so that a service manager sees one process, which owns the
/// tasks. It returns only an error.
fn replace_with(arguments: &Arguments, device: &Device) -> anyhow::Error {
    let declared = match declare(device, &arguments.declare) {
        Ok(declared) => declared,
        Err(error) => return error,
    };
    let error = program(&arguments.program, device).exec();
    drop(declared);
    anyhow::Error::from(error).context(arguments.program[0].clone())
}

/// Declares the tasks for the life of this process, even after another program replaces it.
fn declare(device: &Device, tasks: &[Task]) -> anyhow::Result<Declared> {
    let mut declared = Declared::open()?;
    for task in tasks {
        declared.add(device, task).with_context(|| format!("--declare '{task}'"))?;
    }
    fcntl_setfd(&declared, FdFlags::empty()).context(NODE)?;
    if let [task] = tasks {
        let level = u8::try_from(task.level)?;
        set_io_priority(IO_CLASS_REAL_TIME, level).with_context(|| {
            format!("--declare: I/O priority {level} of the real-time class (needs root)")
        })?;
    }
    Ok(declared)
}

fn program(words: &[String], device: &Device) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).env("STEADY_DEVICE", &device.node).env("STEADY_DISK", &device.disk);
    command
}

/// The program to start. With tasks, it is another `steady`, which the program replaces when the
/// knobs are set.
fn command(arguments: &Arguments, device: &Device) -> anyhow::Result<Command> {
    if arguments.declare.is_empty() {
        return Ok(program(&arguments.program, device));
    }
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("with").arg("--device").arg(&device.node);
    for task in &arguments.declare {
        command.args(["--declare", &task.to_string()]);
    }
    command.arg("--").args(&arguments.program);
    Ok(command)
}

fn run_program(
    arguments: &Arguments,
    device: &Device,
    stop: &Interrupt,
    mut raised: Option<Raised>,
) -> anyhow::Result<ExitStatus> {
    let name = &arguments.program[0];
    let mut command = command(arguments, device)?;
    let mut child = command.spawn().with_context(|| name.clone())?;
    let mut told = false;
    loop {
        if let Some(status) = child.try_wait().with_context(|| name.clone())? {
            return Ok(status);
        }
        // Ctrl-C also reaches the program, but a signal to this process alone does not.
        if stop.requested() && !told {
            terminate(&child).with_context(|| name.clone())?;
            told = true;
        }
        if let Some(Err(error)) = raised.as_mut().map(Raised::raise_new) {
            diagnostic!("steady: --kworkers-fifo: {error}; kernel threads run as before again");
            raised = None;
        }
        thread::sleep(LOOK_EVERY);
    }
}

fn terminate(child: &Child) -> io::Result<()> {
    match i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        Some(pid) => Ok(kill_process(pid, Signal::TERM)?),
        None => Ok(()),
    }
}

fn exit_code(status: ExitStatus) -> ExitCode {
    use std::os::unix::process::ExitStatusExt;
    let signal = status.signal().map(|signal| STATUS_SIGNAL + signal);
    let code = status.code().or(signal).unwrap_or(i32::from(STATUS_OWN));
    ExitCode::from(u8::try_from(code).unwrap_or(STATUS_OWN))
}

/// Makes the file only now. That reads the clock, and in virtual time each reading before the
/// program would change the measurement.
fn write_record(
    arguments: &Arguments,
    out: &Path,
    device: &Device,
    readings: BTreeMap<String, KnobReading>,
    guard: &KnobGuard,
) -> anyhow::Result<()> {
    let Arguments { program, variant, class, .. } = arguments;
    let program = Program { words: program, variant, classes: class };
    let record = program.record(device, readings, guard.queue().in_force())?;
    let file = RecordFile::create(out).with_context(|| named(out))?;
    file.finish(&record.to_json()?).with_context(|| named(out))
}
