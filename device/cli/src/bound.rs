// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady bound`: checks whether each real-time task meets its deadline in the worst case.
//!
//! The analysis is in `steadyio_bound`. This has files, JSON and tables.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use steadyio_bound::BoundError;
use steadyio_bound::advice::{Change, changes};
use steadyio_bound::analysis::{Response, Terms, responses};
use steadyio_bound::buffer::{Buffer, is_mostly_stalls};
use steadyio_bound::declared;
use steadyio_bound::device::Device;
use steadyio_bound::share::{self, Loss};
use steadyio_bound::tasks::{Task, TaskOp, TaskSet};
use steadyio_core::declared::Task as Declaration;
use steadyio_core::diagnostic;

use crate::bound_cpu::{self, FromTrace};
use crate::exit::{Failure, Status};
use crate::output::print;
use crate::progress::Pace;
use crate::quantity;
use crate::table::align;

const SCHEMA: &str = "steadyio.bound/1";
const NS_PER_US: u64 = 1_000;
/// The limit of a profile or a task set. A set of 256 tasks has 50 KiB.
const FILE_BYTES_MAX: u64 = 1 << 20;
const HELP: &str = "Exit status: 0 every task meets its deadline; 2 usage error or invalid file; 3 \
a task may miss its deadline, or has no bound.";
/// The text columns.
const WORDS: [usize; 1] = [0];
const HEAD: [&str; 14] = [
    "task",
    "level",
    "bound",
    "deadline",
    "slack",
    "own",
    "same level",
    "higher levels",
    "blocking",
    "flush",
    "bg wait",
    "stalls",
    "cpu",
    "bg loss",
];

/// Compute the worst-case latency of real-time requests under k2, and check deadlines
///
/// Takes the times of a device and a task set. Prints for each task the longest time from its
/// release to the end of its last I/O, the parts of that time, and the single change that would
/// shorten it most. For declared tasks it also prints the declarations. Estimates the throughput
/// that is left to the background. Measures nothing and needs no device.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Arguments {
    /// Device profile (TOML) from `steady probe`, or a device spec of the lab
    #[arg(value_name = "DEVICE")]
    device: PathBuf,
    /// Tasks, background load and knobs (TOML)
    #[arg(value_name = "TASKS")]
    tasks: PathBuf,
    /// Take CPU times that TASKS lacks from TRACE.json, a record of the tasks by `steady trace
    /// --json`
    #[arg(long, value_name = "TRACE.json")]
    cpu_from: Option<PathBuf>,
    /// Also print the bounds if the device takes TIME longer than its profile says, once in the
    /// response of a task, for example 50ms
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    overrun: Option<Duration>,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<Status, Failure> {
    let trace = arguments.cpu_from.as_deref();
    let (device, mut set) = inputs(&arguments.device, &arguments.tasks, trace.is_some())?;
    let cpu = trace.map_or(Ok(Vec::new()), |trace| bound_cpu::fill(trace, &mut set));
    let cpu = cpu.map_err(Failure::with(Status::Usage))?;
    let mut report = Report::of(&device, &set, cpu).map_err(Failure::with(Status::Usage))?;
    if let Some(overrun) = arguments.overrun {
        report.overrun = Some(Overrun::of(&device, &set, overrun));
    }
    print(&if arguments.json { format!("{:#}\n", report.document()) } else { report.text() })?;
    Ok(if report.holds() { Status::Done } else { Status::Flawed })
}

/// Reads the device and the tasks, and checks that the device has the measurements that the tasks
/// need, and that no task needs a trace, unless there is one.
pub fn inputs(device: &Path, tasks: &Path, has_trace: bool) -> Result<(Device, TaskSet), Failure> {
    let device = read(device, Device::parse).map_err(Failure::with(Status::Usage))?;
    let parse = |text: &str| {
        let set = TaskSet::parse(text)?;
        device.check_file(&set, text)?;
        if !has_trace {
            set.check_cpu_stated(text)?;
        }
        Ok(set)
    };
    let set = read(tasks, parse).map_err(Failure::with(Status::Usage))?;
    Ok((device, set))
}

/// The bounds of a task set. `steady tune --bound` uses it, too.
pub struct Report<'a> {
    device: &'a Device,
    set: &'a TaskSet,
    rows: Vec<Row<'a>>,
    declarations: Option<Declarations>,
    loss: Option<Loss>,
    overrun: Option<Overrun>,
}

/// The bounds of all tasks if the device is late by `ns`, once.
struct Overrun {
    ns: u64,
    bounds_ns: Vec<Option<u64>>,
}

impl Overrun {
    fn of(device: &Device, set: &TaskSet, time: Duration) -> Overrun {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let found = responses(&device.with_overrun(ns), set);
        Overrun { ns, bounds_ns: found.iter().map(Response::bound_ns).collect() }
    }

    fn text(&self, set: &TaskSet) -> String {
        let line = |(task, bound_ns): (&Task, &Option<u64>)| {
            let bound = bound_ns.map_or("no bound".into(), |ns| format!("{} ms", ms(ns)));
            format!("{}: {bound}, if the device is late by {} ms once\n", task.name, ms(self.ns))
        };
        set.tasks.iter().zip(&self.bounds_ns).map(line).collect()
    }
}

impl<'a> Report<'a> {
    /// Computes the bounds. `cpu` has the evidence of a trace for each task, or is empty.
    pub fn of(
        device: &'a Device,
        set: &'a TaskSet,
        cpu: Vec<Option<FromTrace>>,
    ) -> anyhow::Result<Report<'a>> {
        let found = responses(device, set);
        let declarations = declarations(device, set, &found)?;
        let (mut cpu, mut progress) = (cpu.into_iter(), Progress::new());
        let all = set.tasks.len();
        let rows = set
            .tasks
            .iter()
            .zip(&found)
            .zip(changes(device, set, &found))
            .map(|((task, response), change)| {
                progress.next(|done| format!("advice for {done} of {all} tasks"));
                Row { task, response: *response, change, cpu: cpu.next().flatten() }
            })
            .collect();
        let loss = share::loss(device, set);
        Ok(Report { device, set, rows, declarations, loss, overrun: None })
    }

    pub fn holds(&self) -> bool {
        self.rows.iter().all(Row::holds)
    }

    pub fn document(&self) -> Value {
        document(self)
    }

    pub fn text(&self) -> String {
        let declarations = declarations_text(self.set, &self.declarations);
        let overrun = self.overrun.as_ref().map(|overrun| overrun.text(self.set));
        let text = text(self.device, self.set, &self.rows, &self.loss);
        text + &overrun.unwrap_or_default() + &declarations
    }
}

/// How much of a long search is done. `steady tune` and `steady apply` use it, too.
pub struct Progress {
    pace: Pace,
    started: Instant,
    done: usize,
}

impl Progress {
    pub fn new() -> Progress {
        Progress { pace: Pace::new(), started: Instant::now(), done: 0 }
    }

    /// Counts one more part, and prints the number if that is due.
    pub fn next(&mut self, words: impl Fn(usize) -> String) {
        self.done += 1;
        if self.pace.is_due(self.started.elapsed()) {
            diagnostic!("steady: {}", words(self.done));
        }
    }

    /// The same, for a choice of knobs.
    pub fn next_choice(&mut self) {
        self.next(|done| format!("{done} choices of knobs tried"));
    }
}

/// The declarations on which the bounds depend.
struct Declarations {
    device_limits: String,
    /// None: the task is not declared.
    tasks: Vec<Option<Declaration>>,
}

fn declarations(
    device: &Device,
    set: &TaskSet,
    found: &[Response],
) -> anyhow::Result<Option<Declarations>> {
    if set.k2.rt_block_us == 0 {
        return Ok(None);
    }
    let device_limits = declared::device_limits(device, set)?;
    Ok(Some(Declarations { device_limits, tasks: declared::declarations(device, set, found)? }))
}

fn declarations_text(set: &TaskSet, declarations: &Option<Declarations>) -> String {
    let Some(Declarations { device_limits, tasks }) = declarations else { return String::new() };
    let line = |(task, words): (&Task, &Option<Declaration>)| {
        Some(format!("  {}: --declare '{}'\n", task.name, words.as_ref()?))
    };
    let lines: String = set.tasks.iter().zip(tasks).filter_map(line).collect();
    format!(
        "The bounds hold if `iosched/device_limits` is '{device_limits}', and each task runs under \
         `steady with`:\n{lines}"
    )
}

/// Reads and parses a file; errors name it.
pub fn read<T>(path: &Path, parse: impl Fn(&str) -> Result<T, BoundError>) -> anyhow::Result<T> {
    let name = || path.display().to_string();
    let mut text = String::new();
    let file = File::open(path).with_context(name)?;
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).with_context(name)?;
    ensure!(
        text.len() as u64 <= FILE_BYTES_MAX,
        "{}: is larger than {FILE_BYTES_MAX} bytes: must be a profile or a task set",
        name()
    );
    parse(&text).with_context(name)
}

struct Row<'a> {
    task: &'a Task,
    response: Response,
    change: Option<Change>,
    /// The computing time from a trace.
    cpu: Option<FromTrace>,
}

impl Row<'_> {
    fn deadline_ns(&self) -> u64 {
        self.task.deadline_us() * NS_PER_US
    }

    fn bound_ns(&self) -> Option<u64> {
        self.response.bound_ns()
    }

    fn holds(&self) -> bool {
        self.response.meets(self.task.deadline_us())
    }

    /// The buffer; `None` if there is no bound.
    fn buffer(&self) -> Option<Buffer> {
        Some(Buffer::of(self.task, self.bound_ns()?))
    }

    fn is_mostly_stalls(&self) -> bool {
        self.response.job.is_some_and(|terms| is_mostly_stalls(&terms))
    }

    /// Advice for users. A deadline that it names holds by the same analysis.
    fn advice(&self) -> Option<String> {
        let name = &self.task.name;
        if let Some(terms) = self.response.job.filter(is_mostly_stalls) {
            let part = percent(terms.stalls as f64 / terms.sum() as f64);
            return Some(format!(
                "{name}: no knob helps: {part} of it are stalls of the device. Do the I/O in a thread \
                 of its own, in fewer and larger batches, with a buffer\n"
            ));
        }
        let change = self.change.as_ref();
        if let Some(Change { what, bound_ns, .. }) = change.filter(|new| new.meets || self.holds())
        {
            let shorten = if what.contains(',') { "shorten" } else { "shortens" };
            return Some(format!("{name}: {what} {shorten} it most, to {} ms\n", ms(*bound_ns)));
        }
        let now = self.bound_ns().map(|ns| format!("one of {} ms", ms_above(ns)));
        let with =
            change.map(|new| format!("one of {} ms with {}", ms_above(new.bound_ns), new.what));
        let enough: Vec<String> = now.into_iter().chain(with).collect();
        (!self.holds() && !enough.is_empty()).then(|| {
            format!(
                "{name}: no knob is enough: the device is too slow for a deadline of {} ms. It keeps \
                 {}\n",
                ms(self.deadline_ns()),
                enough.join(", or ")
            )
        })
    }

    /// The evidence for the computing time.
    fn cpu_text(&self) -> Option<String> {
        let FromTrace { thread, cpu_us, ios, jobs } = self.cpu.as_ref()?;
        let (name, cpu) = (&self.task.name, ms(cpu_us * NS_PER_US));
        Some(format!(
            "{name}: cpu {cpu} ms per I/O, the most in {ios} I/Os ({jobs} jobs) of thread {thread}\n"
        ))
    }

    fn buffer_text(&self) -> Option<String> {
        let buffer = self.buffer()?;
        let (name, kib, kib_s) = (&self.task.name, buffer.kib(), buffer.kib_s());
        let option = match self.task.op {
            // The default ring has a second of records.
            TaskOp::Write if buffer.bytes > buffer.bytes_s => {
                format!(" (steady record --ring {kib}KiB)")
            }
            _ => String::new(),
        };
        Some(format!("{name}: {kib} KiB keep {kib_s} KiB/s through the longest wait{option}\n"))
    }

    fn slack_ns(&self) -> Option<i64> {
        let bound_ns = i64::try_from(self.bound_ns()?).ok()?;
        Some(i64::try_from(self.deadline_ns()).ok()? - bound_ns)
    }
}

fn document(report: &Report) -> Value {
    let Report { device, set, rows, declarations, loss, overrun } = report;
    let terms = |terms: Terms| {
        json!({
            "bound_ns": terms.sum(),
            "own_ns": terms.own,
            "same_level_ns": terms.same_level,
            "higher_levels_ns": terms.higher_levels,
            "blocking_ns": terms.blocking,
            "flush_ns": terms.flush,
            "background_wait_ns": terms.background_wait,
            "stalls_ns": terms.stalls,
            "cpu_ns": terms.cpu,
            "later_ns": terms.later,
        })
    };
    let declaration = |index: usize| {
        let all = declarations.as_ref()?;
        Some(all.tasks[index].as_ref()?.to_string())
    };
    let tasks: Vec<Value> = rows
        .iter()
        .enumerate()
        .map(|(index, row)| {
            json!({
                "name": row.task.name,
                "level": row.task.level,
                "deadline_ns": row.deadline_ns(),
                "holds": row.holds(),
                "slack_ns": row.slack_ns(),
                "declare": declaration(index),
                "background_loss": loss.as_ref().map(|loss| loss.tasks[index]),
                "job": row.response.job.map(terms),
                "io": row.response.io.map(terms),
                "cpu_from_trace": row.cpu.as_ref().map(|cpu| json!({
                    "thread": cpu.thread,
                    "cpu_us": cpu.cpu_us,
                    "ios": cpu.ios,
                    "jobs": cpu.jobs,
                })),
                "mostly_stalls": row.is_mostly_stalls(),
                "buffer": row.buffer().map(|buffer| json!({
                    "bytes_s": buffer.bytes_s,
                    "bytes": buffer.bytes,
                })),
                "helps_most": row.change.as_ref().map(|change| json!({
                    "change": change.what,
                    "bound_ns": change.bound_ns,
                    "holds": change.meets,
                })),
            })
        })
        .collect();
    json!({
        "schema": SCHEMA,
        "tool": { "steady": env!("CARGO_PKG_VERSION") },
        "device": device.name,
        "name": set.name,
        "holds": rows.iter().all(Row::holds),
        "background_loss": loss.as_ref().map(|loss| loss.all),
        "device_limits": declarations.as_ref().map(|all| all.device_limits.clone()),
        "overrun": overrun.as_ref().map(|overrun| json!({
            "late_ns": overrun.ns,
            "bound_ns": overrun.bounds_ns,
        })),
        "tasks": tasks,
    })
}

fn ms(ns: u64) -> String {
    format!("{:.3}", ns as f64 / 1e6)
}

/// Not below it in the digits that are shown.
fn ms_above(ns: u64) -> String {
    ms(ns.next_multiple_of(NS_PER_US))
}

pub fn percent(part: f64) -> String {
    format!("{:.1} %", 100.0 * part)
}

/// The cells of a row. `loss` is the share that this task takes from the background.
fn cells(row: &Row, loss: Option<f64>) -> Vec<String> {
    let mut cells = vec![row.task.name.clone(), row.task.level.to_string()];
    let Some(terms) = row.response.job else {
        cells.extend(["none".into(), ms(row.deadline_ns()), "-".into()]);
        cells.extend((cells.len()..HEAD.len()).map(|_| "-".into()).collect::<Vec<_>>());
        return cells;
    };
    let slack = row.slack_ns().map_or("-".into(), |ns| format!("{:.3}", ns as f64 / 1e6));
    cells.extend([ms(terms.sum()), ms(row.deadline_ns()), slack]);
    let own_ns = terms.own.saturating_sub(terms.later);
    let waits = [
        own_ns,
        terms.same_level,
        terms.higher_levels,
        terms.blocking,
        terms.flush,
        terms.background_wait,
        terms.stalls,
        terms.cpu,
    ];
    cells.extend(waits.map(ms));
    cells.push(loss.map_or("-".into(), percent));
    cells
}

fn text(device: &Device, set: &TaskSet, rows: &[Row], loss: &Option<Loss>) -> String {
    let mut table = vec![HEAD.map(String::from).to_vec()];
    let of_task = |index: usize| loss.as_ref().map(|loss| loss.tasks[index]);
    table.extend(rows.iter().enumerate().map(|(index, row)| cells(row, of_task(index))));
    let missed = rows.iter().filter(|row| !row.holds()).count();
    let verdict = match missed {
        0 => "every task meets its deadline".to_string(),
        _ => format!("{missed} of {} tasks may miss the deadline", rows.len()),
    };
    let mut text = format!("{} on {}, in ms: {verdict}\n", set.name, device.name);
    text += &align(&table, &WORDS);
    text.extend(rows.iter().filter_map(Row::cpu_text));
    text.extend(rows.iter().filter_map(Row::advice));
    text.extend(rows.iter().filter_map(Row::buffer_text));
    if let Some(loss) = loss {
        let left = percent(1.0 - loss.all);
        text += &format!("background: about {left} of its throughput without cuts\n");
    }
    if rows.iter().any(|row| row.bound_ns().is_none()) {
        text += "none: there may be more work than time for it, so waits have no limit\n";
    }
    text
}
