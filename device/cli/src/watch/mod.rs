// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady watch`: monitors real-time storage latency in production.
//!
//! `steadyio_watch` reads the counters. This has the arguments, the intervals, and the output.

mod flight;
mod line;
mod text_file;

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use steadyio_core::diagnostic;
use steadyio_core::interrupt::Interrupt;
use steadyio_trace::event::Dev;
use steadyio_watch::server::{Address, Latest, Server};
use steadyio_watch::sysfs::Sysfs;
use steadyio_watch::watch::{Interval, Look, Watch, cpu_ns};

use crate::exit::{Failure, Status};
use crate::output::print_while_read;
use crate::quantity::{duration, size};
use flight::FlightRecorder;
use line::Lines;
use text_file::TextFile;

const HELP: &str = "Exit status: 0 ended by a signal, by --count or by a closed output pipe; 1 \
failure; 2 usage error, missing DEVICE, unusable file or address, or --traces cannot start.";
const INTERVAL_MIN: Duration = Duration::from_millis(10);
const INTERVAL_MAX: Duration = Duration::from_secs(3600);
/// The delay with which a signal takes effect.
const SLEEP_MAX: Duration = Duration::from_millis(100);

/// Monitor real-time storage latency in production
///
/// Prints once per interval: latency for each class and real-time level, late requests, the time
/// that real-time requests were blocked, records lost by recorders, and wear. Uses counters that
/// the kernel keeps anyway. If a disk disappears or its scheduler changes, reports it once and
/// continues.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Arguments {
    /// Disks, by name or node [default: all disks under k2, including later ones]
    #[arg(value_name = "DEVICE")]
    devices: Vec<PathBuf>,
    /// Sampling interval
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    interval: Duration,
    /// Stop after N intervals
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Control socket of a recorder, see steady record --control (repeatable)
    #[arg(long, value_name = "SOCKET")]
    recorder: Vec<PathBuf>,
    /// Print JSON instead of text, one document per line and interval
    /// (docs/spec/watch-1.schema.json)
    #[arg(long)]
    json: bool,
    /// Print nothing per interval, only changes
    #[arg(long, conflicts_with = "json")]
    quiet: bool,
    /// Write the metrics to FILE each interval, for the node exporter: NAME.prom
    #[arg(long, value_name = "FILE")]
    openmetrics: Option<PathBuf>,
    /// Answer GET /metrics on HOST:PORT or unix:PATH
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<Address>,
    /// Also trace, and keep the last seconds before each late real-time request in a directory
    /// below DIR
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,
    /// Maximum number of traces to keep in DIR; tracing stops when it is reached
    #[arg(long, value_name = "N", default_value = "20", requires = "traces")]
    traces_max: u64,
    /// With --traces, memory for the trace
    #[arg(long, value_name = "SIZE", default_value = "32MiB", value_parser = size, requires = "traces")]
    traces_memory: u64,
    /// Path to sysfs
    #[arg(long, value_name = "DIR", default_value = "/sys")]
    sysfs: PathBuf,
}

fn interval(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    if (INTERVAL_MIN..=INTERVAL_MAX).contains(&time) {
        return Ok(time);
    }
    Err("must be from 10ms to 1h".into())
}

pub fn run(arguments: &Arguments) -> Result<Status, Failure> {
    let watch = watch_of(arguments).map_err(Failure::with(Status::Usage))?;
    let flight = flight(arguments).map_err(Failure::with(Status::Usage))?;
    let mut shown = Shown::open(arguments).map_err(Failure::with(Status::Usage))?;
    let stop = Interrupt::on_signals().map_err(Failure::with(Status::Failed))?;
    let begun = Instant::now();
    let outcome = repeat(arguments, watch, flight.as_ref(), &mut shown, &stop);
    drop(flight);
    let (wall, cpu) = (begun.elapsed().as_secs_f64(), cpu_ns() as f64 / 1e9);
    diagnostic!(
        "steady: watched for {wall:.1} s, with {cpu:.3} s of CPU time: {:.2} % of a core",
        cpu / wall * 100.0
    );
    outcome
}

fn watch_of(arguments: &Arguments) -> anyhow::Result<Watch> {
    let sysfs = Sysfs::new(&arguments.sysfs);
    if !arguments.sysfs.join("block").is_dir() {
        return Err(anyhow!(
            "--sysfs {}: has no folder block: is sysfs mounted there?",
            arguments.sysfs.display()
        ));
    }
    let mut names = Vec::new();
    for device in &arguments.devices {
        let found = sysfs.find(device)?;
        if let Some(note) = found.disk_note() {
            diagnostic!("steady: {note}");
        }
        if !names.contains(&found.disk) {
            names.push(found.disk);
        }
    }
    Ok(Watch::new(sysfs, names, &arguments.recorder))
}

fn flight(arguments: &Arguments) -> anyhow::Result<Option<FlightRecorder>> {
    let Some(folder) = &arguments.traces else { return Ok(None) };
    let sysfs = Sysfs::new(&arguments.sysfs);
    let number = |device: &PathBuf| {
        let name = sysfs.find(device)?.disk;
        let text = sysfs.disk(&name).read("dev").with_context(|| format!("{name}/dev"))?;
        Dev::parse(text.trim()).with_context(|| format!("{name}/dev: {text}"))
    };
    let devices: anyhow::Result<Vec<Dev>> = arguments.devices.iter().map(number).collect();
    let (max, memory) = (arguments.traces_max, arguments.traces_memory);
    FlightRecorder::start(folder, max, memory, devices?).context("--traces").map(Some)
}

/// Reads the counters at each interval, until the end.
fn repeat(
    arguments: &Arguments,
    mut watch: Watch,
    flight: Option<&FlightRecorder>,
    shown: &mut Shown,
    stop: &Interrupt,
) -> Result<Status, Failure> {
    let mut next = Instant::now();
    shown.begin(&watch.look());
    let mut left = arguments.count;
    while left != Some(0) {
        // A reading that took too long skips intervals. They must not follow all at once.
        while next <= Instant::now() {
            next += arguments.interval;
        }
        sleep_until(next, stop);
        let mut look = watch.look();
        look.interval.notices.extend(flight.into_iter().flat_map(FlightRecorder::said));
        if stop.requested() || !shown.show(&look)? {
            break;
        }
        left = left.map(|left| left - 1);
    }
    Ok(Status::Done)
}

fn sleep_until(when: Instant, stop: &Interrupt) {
    loop {
        let left = when.saturating_duration_since(Instant::now());
        if left.is_zero() || stop.requested() {
            return;
        }
        thread::sleep(left.min(SLEEP_MAX));
    }
}

/// All outputs.
struct Shown {
    style: Style,
    latest: Latest,
    text_file: Option<TextFile>,
    /// The server; dropping it ends it.
    _server: Option<Server>,
}

enum Style {
    Lines(Lines),
    Json,
    Quiet,
}

impl Shown {
    fn open(arguments: &Arguments) -> anyhow::Result<Shown> {
        let style = match (arguments.json, arguments.quiet) {
            (true, _) => Style::Json,
            (_, true) => Style::Quiet,
            _ => Style::Lines(Lines::new()),
        };
        let text_file = arguments.openmetrics.as_deref().map(TextFile::open).transpose();
        let text_file = text_file.context("--openmetrics")?;
        let latest = Latest::default();
        let server =
            arguments.listen.as_ref().map(|address| serve(address, &latest)).transpose()?;
        Ok(Shown { style, latest, text_file, _server: server })
    }

    /// Shows the first reading, which has no interval before it.
    fn begin(&mut self, look: &Look) {
        self.keep(look);
        tell(&look.interval);
    }

    /// Shows a reading; false if its reader is gone.
    fn show(&mut self, look: &Look) -> Result<bool, Failure> {
        self.keep(look);
        tell(&look.interval);
        match &mut self.style {
            Style::Quiet => Ok(true),
            Style::Lines(lines) => print_while_read(&lines.of(&look.interval)),
            Style::Json => {
                let json = serde_json::to_string(&look.interval);
                print_while_read(&(json.map_err(Failure::with(Status::Failed))? + "\n"))
            }
        }
    }

    fn keep(&mut self, look: &Look) {
        self.latest.set(look.snapshot.clone());
        if let Some(file) = &mut self.text_file {
            file.replace(&look.snapshot);
        }
    }
}

fn tell(interval: &Interval) {
    for notice in &interval.notices {
        diagnostic!("steady: {notice}");
    }
}

fn serve(address: &Address, latest: &Latest) -> anyhow::Result<Server> {
    let named = match address {
        Address::Tcp(address) => address.clone(),
        Address::Unix(path) => format!("unix:{}", path.display()),
    };
    let server = Server::start(address, latest.clone());
    let server = server.with_context(|| format!("--listen {named}"))?;
    match server.address {
        Some(address) => diagnostic!("steady: metrics are at http://{address}/metrics"),
        None => diagnostic!("steady: metrics are at /metrics of {named}"),
    }
    Ok(server)
}
