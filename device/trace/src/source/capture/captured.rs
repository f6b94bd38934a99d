// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was captured, now or earlier on another machine, as events.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::Read;
use std::path::Path;

use super::CaptureError;
use super::cpu_data::CpuData;
use super::enable::{Enabled, EnabledEvent};
use super::folder::{self, Meta};
use super::threads::AskedFor;
use crate::event::{Comm, Event, EventKind, UNKNOWN_CPU};
use crate::io::Processes;
use crate::source::decode::Decoder;
use crate::source::format::PageFormat;
use crate::source::pages::{CpuPages, Merged};
use crate::source::ring::{self, Entry};
use crate::source::{Events, Position, Problem};

/// A capture that has ended.
#[derive(Debug)]
pub struct Captured {
    meta: Meta,
    held: Vec<CpuData>,
    decoder: Decoder,
    page_format: PageFormat,
    /// Its folder, or what else to call it in problems.
    name: String,
    pub(super) not_kept: Option<CaptureError>,
}

impl Captured {
    /// Whether this is a folder that [`Captured::open`] may read.
    pub fn is_folder(dir: &Path) -> bool {
        dir.join(folder::META).is_file()
    }

    /// Reads a kept one, of any machine.
    pub fn open(dir: &Path) -> Result<Captured, Problem> {
        let (meta, enabled, held) = folder::load(dir)?;
        Captured::new(meta, &enabled, held, dir.display().to_string())
    }

    pub(super) fn new(
        meta: Meta,
        enabled: &Enabled,
        held: Vec<CpuData>,
        name: String,
    ) -> Result<Captured, Problem> {
        let file = |file: &str| Path::new(&name).join(file);
        let page_format = PageFormat::parse(&enabled.header_page).map_err(|error| {
            folder::problem(&file(folder::HEADER_PAGE), Position::Line(error.line), error.what)
        })?;
        let decoder = enabled.decoder(&name)?;
        Ok(Captured { meta, held, decoder, page_format, name, not_kept: None })
    }

    /// Why it is not in the folder in which it was to be kept.
    pub fn not_kept(&self) -> Option<&CaptureError> {
        self.not_kept.as_ref()
    }

    /// What was traced, when and where.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The requested threads, before the first event; `None` for all.
    pub fn asked_for(&self) -> Option<AskedFor> {
        let Meta { asked_for, tracer, .. } = &self.meta;
        let mut asked_for = asked_for.clone();
        if self.meta.kept_since_ns.is_some() {
            asked_for.extend(self.threads_of_calls());
        }
        (!asked_for.is_empty()).then(|| AskedFor::of_threads(&asked_for, tracer))
    }

    /// The threads whose calls were traced, if not those of all were: where old events made room for new ones, the start
    /// of such a thread may be gone.
    fn threads_of_calls(&self) -> BTreeSet<u32> {
        if self.held.iter().all(|held| !held.of_threads) {
            return BTreeSet::new();
        }
        let is_call = |event: &Event| matches!(event.what, EventKind::CallEnter { .. });
        self.events().flatten().filter(is_call).map(|event| event.pid).collect()
    }

    /// The processes of threads that began before it.
    pub fn processes(&self) -> Processes {
        Processes::new(self.meta.processes.clone())
    }

    /// Whether its switches are those of all threads.
    pub fn has_all_switches(&self) -> bool {
        let is_switch = |event: &&EnabledEvent| event.name == "sched_switch";
        self.meta.events.iter().find(is_switch).is_some_and(|event| !event.of_threads)
    }

    /// Its events in the order of their time, from the first; may be called again.
    pub fn events(&self) -> Events<'_> {
        let files = self.meta.cpus.iter().map(|cpu| Path::new(&self.name).join(&cpu.file));
        let cpus = self.held.iter().zip(files).map(|(held, file)| CpuPages {
            cpu: held.cpu,
            file: file.display().to_string(),
            pages: Box::new(held.read()),
        });
        let names = self.meta.threads.iter();
        let names: HashMap<u32, Comm> =
            names.map(|(thread, name)| (*thread, Comm::new(name.as_bytes()))).collect();
        let unsaid = self.meta.cpus.iter().zip(&self.held).zip(0..).map(|((cpu, held), buffer)| {
            let told_of = cpu.records_lost.saturating_sub(cpu.records_lost_unplaced);
            let count = told_of.saturating_sub(self.said_lost(held, told_of));
            Untold { buffer: Some(buffer), cpu: cpu.cpu, count }
        });
        let anywhere = self.meta.cpus.iter().map(|cpu| Untold {
            buffer: None,
            cpu: UNKNOWN_CPU,
            count: cpu.records_lost_unplaced,
        });
        Box::new(Accounted {
            merged: Merged::new(cpus.collect(), self.page_format, &self.decoder, names),
            tracer: self.meta.tracer.iter().copied().collect(),
            lost: unsaid.chain(anywhere).filter(|untold| untold.count > 0).collect(),
            since_ns: self.meta.kept_since_ns.unwrap_or(0),
            latest_ns: self.meta.started.mono_ns,
        })
    }

    /// How many records a CPU's pages say that were lost. A page that is full has no room to say how many.
    fn said_lost(&self, held: &CpuData, lost: u64) -> u64 {
        let (mut pages, mut page, mut said) = (held.read(), Vec::new(), 0);
        if lost == 0 {
            return 0;
        }
        loop {
            page.clear();
            // Errors are reported where the events are read.
            match (&mut pages).take(self.page_format.page_size as u64).read_to_end(&mut page) {
                Ok(0) | Err(_) => return said,
                Ok(_) => {}
            }
            let first = ring::entries(&page, &self.page_format).map(|mut entries| entries.next());
            if let Ok(Some(Ok(Entry::Lost { count, .. }))) = first {
                said += count;
            }
        }
    }
}

/// Drops the tracer's own calls, and adds losses that no page mentions at the end.
struct Accounted<'a> {
    merged: Merged<'a>,
    tracer: HashSet<u32>,
    lost: Vec<Untold>,
    /// Before this some are missing.
    since_ns: u64,
    latest_ns: u64,
}

/// A loss that no page says, or of which it does not say how many.
struct Untold {
    /// Which of the buffers.
    buffer: Option<usize>,
    cpu: u32,
    count: u64,
}

impl Iterator for Accounted<'_> {
    type Item = Result<Event, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let mut event = match self.merged.next() {
                Some(Ok(event)) => event,
                Some(Err(problem)) => return Some(Err(problem)),
                None => return self.untold_loss().map(Ok),
            };
            if event.time_ns < self.since_ns {
                continue;
            }
            self.latest_ns = event.time_ns;
            match &mut event.what {
                EventKind::CallEnter { .. } | EventKind::CallExit { .. }
                    if self.tracer.contains(&event.pid) =>
                {
                    continue;
                }
                EventKind::Lost { count: count @ 0, .. } => {
                    let unsaid = self.lost.iter_mut().find(|untold| untold.cpu == event.cpu);
                    unsaid.into_iter().for_each(|rest| *count = std::mem::take(&mut rest.count));
                }
                _ => {}
            }
            return Some(Ok(event));
        }
    }
}

impl Accounted<'_> {
    fn untold_loss(&mut self) -> Option<Event> {
        let Untold { buffer, cpu, count } = loop {
            match self.lost.pop()? {
                Untold { count: 0, .. } => {}
                untold => break untold,
            }
        };
        let (time_ns, comm) = (self.latest_ns, Comm::default());
        let since_ns = buffer.map(|buffer| self.merged.latest_ns(buffer));
        Some(Event { time_ns, cpu, pid: 0, comm, what: EventKind::Lost { count, since_ns } })
    }
}
