// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes and reads a capture as a folder: `docs/spec/trace-capture-1.md`. `Capture::stop` writes
//! it for `--keep`, and [`super::Captured::open`] reads it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use steadyio_core::kernel::Kernel;

use super::cpu_data::CpuData;
use super::devices;
use super::enable::{Enabled, EnabledEvent, Unreadable};
use super::options::{Options, Trigger};
use crate::open_files::OpenFiles;
use crate::source::decode::Decoder;
use crate::source::format::{Format, PageFormat};
use crate::source::table::{self, Detail};
use crate::source::{Position, Problem};

/// The value of `schema` in `capture.json`.
pub const SCHEMA: &str = "steadyio.trace-capture/1";
pub(super) const META: &str = "capture.json";
const HEADER_PAGE: &str = "header_page";
const FORMATS: &str = "formats";

/// The contents of `capture.json`. The pages and the formats are in other files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    pub schema: String,
    /// The kernel's release.
    pub kernel: String,
    /// The kernel's version: which build of the release.
    pub kernel_version: String,
    /// The processor architecture, as `uname` prints it.
    pub machine: String,
    /// The byte order of all numbers in the pages: `little`.
    pub byte_order: String,
    /// The trace clock: `mono`.
    pub clock: String,
    pub started: Moment,
    pub stopped: Moment,
    /// The requested devices, as numbers; empty for all devices.
    pub devices: Vec<String>,
    pub detail: Detail,
    /// The kernel's buffer per CPU, in KiB.
    pub buffer_kib: u32,
    /// Whether tracing ended early because memory was full.
    pub memory_full: bool,
    /// The time from which no event is missing, in ns of the trace clock. Set if older events were
    /// discarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_since_ns: Option<u64>,
    pub events: Vec<EnabledEvent>,
    pub unavailable: Vec<Unreadable>,
    /// The buffers, in the order of the CPUs.
    pub cpus: Vec<CpuMeta>,
    /// The requested threads; events show the threads that they started. Empty for all threads.
    pub asked_for: Vec<u32>,
    /// The tracer's own threads, whose calls are dropped.
    pub tracer: Vec<u32>,
    /// Names of the machine's block devices by their numbers.
    pub device_names: BTreeMap<String, String>,
    /// The names of threads at the beginning of tracing, and of those at its end.
    pub threads: BTreeMap<u32, String>,
    /// The process of each thread that is not the first thread of its process.
    #[serde(default)]
    pub processes: BTreeMap<u32, u32>,
    /// The cgroups of processes, at the same moments as the threads.
    #[serde(default)]
    pub cgroups: BTreeMap<u32, String>,
    /// The files that the traced processes had open meanwhile.
    #[serde(default)]
    pub open_files: OpenFiles,
    /// The text of the kernel's `header_page`.
    #[serde(skip)]
    pub header_page: String,
}

/// The buffer of one CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuMeta {
    pub cpu: u32,
    /// Whether the buffer has only events in the context of the requested threads.
    #[serde(default)]
    pub of_threads: bool,
    /// The file with its pages.
    pub file: String,
    pub bytes: u64,
    /// The number of all records that the kernel dropped.
    pub records_lost: u64,
    /// The number of dropped records that no page mentions. Their place is unknown.
    #[serde(default)]
    pub records_lost_unplaced: u64,
}

/// One moment, on two clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// The time on the trace clock, in ns.
    pub mono_ns: u64,
    /// The time since 1970, in ns.
    pub unix_ns: u64,
}

impl Moment {
    pub fn now() -> Moment {
        let ns = |clock| {
            let time = clock_gettime(clock);
            time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
        };
        Moment { mono_ns: ns(ClockId::Monotonic), unix_ns: ns(ClockId::Realtime) }
    }
}

impl Meta {
    /// The description of a trace of this kernel that begins now.
    pub(super) fn begin(options: &Options, enabled: Enabled, header_page: String) -> Meta {
        let (events, unavailable) = enabled;
        let Kernel { release, version } = Kernel::running();
        let names = devices::names().into_iter();
        let started = Moment::now();
        Meta {
            schema: SCHEMA.into(),
            kernel: release,
            kernel_version: version,
            machine: rustix::system::uname().machine().to_string_lossy().into_owned(),
            byte_order: "little".into(),
            clock: "mono".into(),
            started,
            stopped: started,
            devices: options.devices.iter().map(ToString::to_string).collect(),
            detail: options.detail,
            buffer_kib: options.buffer_kib,
            events,
            unavailable,
            device_names: names.map(|(dev, name)| (dev.to_string(), name)).collect(),
            header_page,
            ..Meta::default()
        }
    }

    /// Fails if this kernel lacks the events that the trigger needs.
    pub(super) fn check_trigger(&self, trigger: Trigger) -> io::Result<()> {
        let has = |name, field| {
            let mut named = self.events.iter().filter(|event| event.name == name);
            named.any(|event| event.format.contains(field))
        };
        let why = match trigger {
            Trigger::Above(_, Some(_)) if !has("block_rq_complete", " ioprio;") => {
                "this kernel's events lack the class of a request (needs Linux 6.4 or later)"
            }
            Trigger::Late if !has("k2_late", "") => {
                "k2 reports late requests (choose it as the scheduler first)"
            }
            _ => return Ok(()),
        };
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }

    /// The decoder for the pages. Problems call the trace `name`.
    pub(super) fn decoder(&self, name: &Path) -> Result<Decoder, Problem> {
        let in_file = |file| {
            let path = name.join(file);
            move |what| problem(&path, Position::Whole, what)
        };
        let page = PageFormat::parse(&self.header_page).map_err(in_file(HEADER_PAGE.into()))?;
        let mut decoder = Decoder::new(page);
        for event in &self.events {
            let format = Format::parse(&event.format).map_err(in_file(format_path(event)))?;
            let row = table::by_name(event.name.as_bytes());
            // A capture of a later version may have events that are unknown here. Their records are
            // skipped.
            if let Some(row) = row.filter(|row| row.system == event.system) {
                decoder.add(row, &format).map_err(in_file(format_path(event)))?;
            }
        }
        Ok(decoder)
    }
}

/// Creates an empty file for a CPU's pages, and the folder if needed.
pub(super) fn create_pages(dir: &Path, held: &CpuData) -> io::Result<File> {
    fs::create_dir_all(dir)?;
    let path = dir.join(held.file_name());
    let file = File::options().read(true).write(true).create(true).truncate(true).open(&path);
    file.map_err(|error| io::Error::other(format!("{}: {error}", path.display())))
}

/// The path of the file with an event's format.
fn format_path(event: &EnabledEvent) -> PathBuf {
    Path::new(FORMATS).join(&event.system).join(&event.name)
}

/// Writes everything to a folder. The description comes last, so a folder that has one is complete.
/// After a failure nothing is left there, and `held` is unchanged.
pub(super) fn save(dir: &Path, meta: &Meta, held: &mut [CpuData]) -> io::Result<()> {
    let mut all = || -> io::Result<()> {
        fs::create_dir_all(dir)?;
        for held in held.iter_mut().filter(|held| !held.in_folder) {
            let copy = held.copy_to(create_pages(dir, held)?)?;
            held.go_on_in(copy);
        }
        fs::write(dir.join(HEADER_PAGE), &meta.header_page)?;
        for event in &meta.events {
            let path = dir.join(format_path(event));
            fs::create_dir_all(path.parent().unwrap_or(dir))?;
            fs::write(path, &event.format)?;
        }
        fs::write(dir.join(META), serde_json::to_string_pretty(meta)? + "\n")
    };
    all().inspect_err(|_| {
        remove_pages(dir, held.iter());
        for name in [HEADER_PAGE, META] {
            let _ = fs::remove_file(dir.join(name));
        }
        let _ = fs::remove_dir_all(dir.join(FORMATS));
    })
}

/// Removes the files with pages. Pages that are still open stay readable. A file that cannot be
/// removed was never created.
pub(super) fn remove_pages<'a>(dir: &Path, held: impl Iterator<Item = &'a CpuData>) {
    for held in held {
        let _ = fs::remove_file(dir.join(held.file_name()));
    }
}

/// Reads a folder. The pages stay in their files.
pub(super) fn load(dir: &Path) -> Result<(Meta, Vec<CpuData>), Problem> {
    let path = dir.join(META);
    let mut meta: Meta = serde_json::from_str(&read(&path)?)
        .map_err(|error| problem(&path, Position::Line(error.line() as u64), error.to_string()))?;
    let known = [("schema", &meta.schema, SCHEMA), ("byte_order", &meta.byte_order, "little")];
    for (key, value, expected) in known {
        if value != expected {
            let what = format!("{key} is {value:?}, only {expected:?} can be read");
            return Err(problem(&path, Position::Whole, what));
        }
    }
    meta.header_page = read(&dir.join(HEADER_PAGE))?;
    for event in &mut meta.events {
        event.format = read(&dir.join(format_path(event)))?;
    }
    let open = |cpu: &CpuMeta| {
        let path = dir.join(&cpu.file);
        let file = File::open(&path)
            .map_err(|error| problem(&path, Position::Whole, error.to_string()))?;
        let CpuMeta { cpu, of_threads, .. } = *cpu;
        Ok(CpuData { cpu, of_threads, older: None, file, in_folder: true })
    };
    let held = meta.cpus.iter().map(open).collect::<Result<_, _>>()?;
    Ok((meta, held))
}

fn read(path: &Path) -> Result<String, Problem> {
    fs::read_to_string(path).map_err(|error| problem(path, Position::Whole, error.to_string()))
}

fn problem(path: &Path, place: Position, what: String) -> Problem {
    Problem { file: path.display().to_string(), place, what }
}
