// SPDX-License-Identifier: MIT OR Apache-2.0
//! A capture as a folder: `docs/spec/trace-capture-1.md`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use steadyio_core::kernel::Kernel;

use super::cpu_data::CpuData;
use super::enable::{Enabled, EnabledEvent, Unreadable};
use super::{Options, Trigger, devices};
use crate::source::decode::Decoder;
use crate::source::format::{Format, PageFormat};
use crate::source::table::{self, Detail};
use crate::source::{Position, Problem};

/// What `capture.json` says it is.
pub const SCHEMA: &str = "steadyio.trace-capture/1";
pub(super) const META: &str = "capture.json";
const HEADER_PAGE: &str = "header_page";
const FORMATS: &str = "formats";

/// `capture.json`: all but the pages and the formats.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    pub schema: String,
    /// The kernel's release.
    pub kernel: String,
    /// The kernel's version: which build of the release.
    pub kernel_version: String,
    /// The processor's kind, as `uname` has it.
    pub machine: String,
    /// Of all numbers in the pages: `little`.
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
    /// Since when all events are there, in ns of the trace clock, if older ones made room for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_since_ns: Option<u64>,
    pub events: Vec<EnabledEvent>,
    pub unavailable: Vec<Unreadable>,
    /// The buffers, in the order of the CPUs.
    pub cpus: Vec<CpuMeta>,
    /// The requested threads; events show their descendants. Empty for all threads.
    pub asked_for: Vec<u32>,
    /// The tracer's own threads, whose calls are dropped.
    pub tracer: Vec<u32>,
    /// Names of the machine's block devices by their numbers.
    pub device_names: BTreeMap<String, String>,
    /// Names of threads when tracing began, and of those that were there when it ended.
    pub threads: BTreeMap<u32, String>,
    /// The processes of those that are not the first thread of one.
    #[serde(default)]
    pub processes: BTreeMap<u32, u32>,
    /// The cgroups of processes, then as above.
    #[serde(default)]
    pub cgroups: BTreeMap<u32, String>,
    /// The text of the kernel's `header_page`.
    #[serde(skip)]
    pub header_page: String,
}

/// The buffer of one CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuMeta {
    pub cpu: u32,
    /// Only events in the context of the requested threads.
    #[serde(default)]
    pub of_threads: bool,
    /// The file with its pages.
    pub file: String,
    pub bytes: u64,
    /// Records that the kernel dropped in all.
    pub records_lost: u64,
    /// Those of them that no page mentions: they may be missing anywhere.
    #[serde(default)]
    pub records_lost_unplaced: u64,
}

/// A moment on two clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// On the trace clock, in ns.
    pub mono_ns: u64,
    /// Since 1970, in ns.
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
    /// Of a trace of this kernel that begins now.
    pub(super) fn begin(options: &Options, enabled: Enabled, header_page: String) -> Meta {
        let (events, unavailable) = enabled;
        let Kernel { release, version } = Kernel::running();
        let names = devices::names().into_iter();
        let started = Moment::now();
        let mut meta = Meta {
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
        };
        meta.add_threads();
        meta
    }

    /// Fails if no event can tell what is waited for.
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

    /// How to read the pages; `name` is what problems call the trace.
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
            // An event that a later version captured may be unknown here: its records are skipped.
            if let Some(row) = row.filter(|row| row.system == event.system) {
                decoder.add(row, &format).map_err(in_file(format_path(event)))?;
            }
        }
        Ok(decoder)
    }
}

/// An empty file for a CPU's pages; the folder is made if it is not there.
pub(super) fn create_pages(dir: &Path, held: &CpuData) -> io::Result<File> {
    fs::create_dir_all(dir)?;
    let path = dir.join(held.file_name());
    let file = File::options().read(true).write(true).create(true).truncate(true).open(&path);
    file.map_err(|error| io::Error::other(format!("{}: {error}", path.display())))
}

/// The file of an event's format, in the folder.
fn format_path(event: &EnabledEvent) -> PathBuf {
    Path::new(FORMATS).join(&event.system).join(&event.name)
}

/// Writes everything to a folder, the description last, so that a folder with one is whole. If it cannot, nothing is
/// left there, and `held` is as good as before.
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

/// Open pages stay readable, so none is lost. A page that cannot be removed was never made.
pub(super) fn remove_pages<'a>(dir: &Path, held: impl Iterator<Item = &'a CpuData>) {
    for held in held {
        let _ = fs::remove_file(dir.join(held.file_name()));
    }
}

/// Reads a folder back; the pages stay in their files.
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
