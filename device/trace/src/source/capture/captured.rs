// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was captured, now or earlier on another machine, as events.

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::path::Path;

use super::CaptureError;
use super::cpu_data::CpuData;
use super::enable::Enabled;
use super::folder::{self, Meta};
use super::threads::AskedFor;
use crate::event::{Comm, Event, EventKind, UNKNOWN_CPU};
use crate::source::decode::Decoder;
use crate::source::format::{Format, PageFormat};
use crate::source::merge::{CpuPages, Merged};
use crate::source::ring::{self, Entry};
use crate::source::wanted::wanted;
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
        let rows = wanted();
        let mut decoder = Decoder::default();
        for (event, text) in enabled.events.iter().zip(&enabled.formats) {
            let path = file(&folder::format_path(event).to_string_lossy());
            let format = Format::parse(text)
                .map_err(|error| folder::problem(&path, Position::Line(error.line), error.what))?;
            let is_named = |name: &str| name == event.name;
            let row = rows.iter().find(|row| {
                row.system == event.system
                    && (is_named(&row.name) || row.old_name.is_some_and(is_named))
            });
            // An event that a later version captured may be unknown here: its records are skipped.
            if let Some(row) = row {
                decoder
                    .add(row, &format)
                    .map_err(|why| folder::problem(&path, Position::Whole, why))?;
            }
        }
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
        (!asked_for.is_empty()).then(|| AskedFor::of_threads(asked_for, tracer))
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
        let unsaid = self.meta.cpus.iter().zip(&self.held).map(|(cpu, held)| {
            let told_of = cpu.records_lost.saturating_sub(cpu.records_lost_unplaced);
            (cpu.cpu, told_of.saturating_sub(self.said_lost(held, told_of)))
        });
        let anywhere = self.meta.cpus.iter().map(|cpu| (UNKNOWN_CPU, cpu.records_lost_unplaced));
        Box::new(Accounted {
            merged: Merged::new(cpus.collect(), self.page_format, &self.decoder, names),
            tracer: self.meta.tracer.iter().copied().collect(),
            lost: unsaid.chain(anywhere).filter(|(_, count)| *count > 0).collect(),
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
    /// By CPU, and not said by a page.
    lost: Vec<(u32, u64)>,
    latest_ns: u64,
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
            self.latest_ns = event.time_ns;
            match &mut event.what {
                EventKind::CallEnter { .. } | EventKind::CallExit { .. }
                    if self.tracer.contains(&event.pid) =>
                {
                    continue;
                }
                EventKind::Lost { count: count @ 0 } => {
                    let unsaid = self.lost.iter_mut().find(|(cpu, _)| *cpu == event.cpu);
                    unsaid.into_iter().for_each(|(_, rest)| *count = std::mem::take(rest));
                }
                _ => {}
            }
            return Some(Ok(event));
        }
    }
}

impl Accounted<'_> {
    fn untold_loss(&mut self) -> Option<Event> {
        let (cpu, count) = loop {
            match self.lost.pop()? {
                (_, 0) => {}
                untold => break untold,
            }
        };
        let (time_ns, comm) = (self.latest_ns, Comm::default());
        Some(Event { time_ns, cpu, pid: 0, comm, what: EventKind::Lost { count } })
    }
}
