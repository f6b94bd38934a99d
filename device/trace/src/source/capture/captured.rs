// SPDX-License-Identifier: MIT OR Apache-2.0
//! A finished capture, from this run or from another machine. [`Captured::events`] decodes it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::iter;
use std::path::{Path, PathBuf};

use super::cpu_data::CpuData;
use super::enable::EnabledEvent;
use super::folder::{self, Meta};
use super::threads::AskedFor;
use crate::event::{Comm, Event, EventKind, UNKNOWN_CPU};
use crate::io::Processes;
use crate::open_files::OpenFiles;
use crate::source::decode::Decoder;
use crate::source::pages::{CpuPages, Merged};
use crate::source::ring::{self, Entry};
use crate::source::table::{self, Need};
use crate::source::{Events, Position, Problem};

/// A capture that has ended.
#[derive(Debug)]
pub struct Captured {
    /// The devices, events, time and machine of the capture.
    pub meta: Meta,
    /// The error that prevented writing the requested folder.
    pub not_kept: Option<io::Error>,
    held: Vec<CpuData>,
    decoder: Decoder,
    /// The folder, or another name of the capture in problems.
    name: PathBuf,
}

impl Captured {
    /// Whether this is a folder that [`Captured::open`] may read.
    pub fn is_folder(dir: &Path) -> bool {
        dir.join(folder::META).is_file()
    }

    /// Opens a capture folder, which may come from any machine.
    pub fn open(dir: &Path) -> Result<Captured, Problem> {
        let (meta, held) = folder::load(dir)?;
        Captured::new(meta, held, dir)
    }

    pub(super) fn new(meta: Meta, held: Vec<CpuData>, name: &Path) -> Result<Captured, Problem> {
        let decoder = meta.decoder(name)?;
        Ok(Captured { meta, not_kept: None, held, decoder, name: name.into() })
    }

    /// The requested threads, as of the first event; `None` for all.
    pub fn asked_for(&self) -> Option<AskedFor> {
        let Meta { asked_for, tracer, .. } = &self.meta;
        let mut asked_for = asked_for.clone();
        // Old events were discarded, perhaps with the start of a requested thread. Therefore the
        // threads count whose calls were traced, unless all were.
        if self.meta.kept_since_ns.is_some() && self.held.iter().any(|held| held.of_threads) {
            let is_call = |event: &Event| matches!(event.what, EventKind::CallEnter { .. });
            let calls = self.events().flatten().filter(is_call);
            asked_for.extend(calls.map(|event| event.pid).collect::<BTreeSet<_>>());
        }
        (!asked_for.is_empty()).then(|| AskedFor::of_threads(&asked_for, tracer))
    }

    /// The processes of threads that began before the capture.
    pub fn processes(&self) -> Processes {
        Processes::new(self.meta.processes.clone().into_iter().collect(), self.meta.cgroups.clone())
    }

    /// The files that processes had open, from the first event on. What an older look showed may
    /// have been closed before that.
    pub fn open_files(&self) -> OpenFiles {
        self.meta.open_files.clone().since(self.meta.kept_since_ns.unwrap_or(0))
    }

    /// Whether calls on names and attributes of files were traced.
    pub fn has_metadata(&self) -> bool {
        let row = |event: &EnabledEvent| table::by_name(event.name.as_bytes());
        let mut rows = self.meta.events.iter().filter_map(row);
        rows.any(|row| row.need == Need::Metadata)
    }

    /// Whether the capture has the switches of all threads.
    pub fn has_all_switches(&self) -> bool {
        let switches = self.meta.events.iter().find(|event| event.name == "sched_switch");
        switches.is_some_and(|event| !event.of_threads)
    }

    /// The events in time order, without the tracer's own calls. Problems of short files come first;
    /// losses that no page mentions come last. It may be called again.
    pub fn events(&self) -> Events<'_> {
        let cpus = self.meta.cpus.iter().zip(&self.held).map(|(cpu, held)| CpuPages {
            cpu: held.cpu,
            file: self.name.join(&cpu.file).display().to_string(),
            pages: Box::new(held.pages(self.decoder.page.page_size)),
        });
        let name = |(thread, name): (&u32, &String)| (*thread, Comm::new(name.as_bytes()));
        let names: HashMap<u32, Comm> = self.meta.threads.iter().map(name).collect();
        let mut merged = Merged::new(cpus.collect(), &self.decoder, names);
        let tracer: HashSet<u32> = self.meta.tracer.iter().copied().collect();
        let (problems, mut untold) = self.untold_losses();
        let mut latest_ns = self.meta.started.mono_ns;
        let problems = problems.into_iter().map(Err);
        Box::new(problems.chain(iter::from_fn(move || {
            loop {
                let mut event = match merged.next() {
                    Some(Ok(event)) => event,
                    Some(problem) => return Some(problem),
                    None => {
                        let Untold { buffer, cpu, count } = untold.pop()?;
                        let since_ns = buffer.map(|buffer| merged.latest_ns(buffer));
                        let what = EventKind::Lost { count, since_ns };
                        let (time_ns, comm) = (latest_ns, Comm::default());
                        return Some(Ok(Event { time_ns, cpu, pid: 0, comm, what }));
                    }
                };
                let is_call =
                    matches!(event.what, EventKind::CallEnter { .. } | EventKind::CallExit { .. });
                let is_kept =
                    self.meta.kept_since_ns.is_none_or(|since_ns| event.time_ns >= since_ns);
                if is_kept {
                    latest_ns = event.time_ns;
                }
                if !is_kept || is_call && tracer.contains(&event.pid) {
                    continue;
                }
                if let EventKind::Lost { count: count @ 0, .. } = &mut event.what {
                    let is_of_cpu = |of: &Untold| of.cpu == event.cpu && of.count > 0;
                    let of_cpu = untold.iter().position(is_of_cpu);
                    *count = of_cpu.map_or(0, |place| untold.remove(place).count);
                }
                return Some(Ok(event));
            }
        })))
    }

    /// The losses of each buffer that no page counts, and those whose place is unknown. If a file
    /// is shorter than `capture.json` says, its last events are lost, which is a problem; a part of
    /// a page is one where it is read.
    fn untold_losses(&self) -> (Vec<Problem>, Vec<Untold>) {
        let (mut problems, mut cut, mut untold) = (Vec::new(), Vec::new(), Vec::new());
        for (buffer, (meta, held)) in self.meta.cpus.iter().zip(&self.held).enumerate() {
            let (cpu, buffer, bytes) = (meta.cpu, Some(buffer), held.bytes_with_older());
            if bytes < meta.bytes {
                cut.push(Untold { buffer, cpu, count: 0 });
            }
            if bytes < meta.bytes && bytes % self.decoder.page.page_size as u64 == 0 {
                let file = self.name.join(&meta.file).display().to_string();
                let what = format!(
                    "ends here, and had {} bytes: later events of CPU {cpu} are lost (copy the folder again)",
                    meta.bytes
                );
                problems.push(Problem { file, place: Position::Byte(bytes), what });
            }
            let placed = meta.records_lost.saturating_sub(meta.records_lost_unplaced);
            let said = if placed > 0 { self.said_lost(held) } else { 0 };
            untold.push(Untold { buffer, cpu, count: placed.saturating_sub(said) });
            let count = meta.records_lost_unplaced;
            untold.push(Untold { buffer: None, cpu: UNKNOWN_CPU, count });
        }
        untold.retain(|untold| untold.count > 0);
        (problems, cut.into_iter().chain(untold).collect())
    }

    /// The number of lost records that a CPU's pages report. A full page has no room for the
    /// number.
    fn said_lost(&self, held: &CpuData) -> u64 {
        // Errors are reported where the events are read.
        let pages = held.pages(self.decoder.page.page_size).map_while(Result::ok);
        let said = pages.filter_map(|page| {
            match ring::entries(&page, &self.decoder.page).ok()?.next()? {
                Ok(Entry::Lost { count, .. }) => Some(count),
                _ => None,
            }
        });
        said.sum()
    }
}

/// A loss that no page reports, or reports without a number.
struct Untold {
    /// The index of the buffer.
    buffer: Option<usize>,
    cpu: u32,
    count: u64,
}
