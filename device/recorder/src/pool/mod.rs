// SPDX-License-Identifier: MIT OR Apache-2.0
//! The recorder: channels that never block, and a thread that writes their records. `steady
//! record`, the bench and `capi` use it.
//!
//! [`Recorder::start`] checks the configuration, prepares the writer thread, makes the pool and
//! starts the thread. Channels append. [`Recorder::stats`] returns counters at any time.
//! [`Recorder::finish`] makes the rest durable and ends the segment. Dropping a recorder does the
//! same, without a report. [`Recorder::add_channel`] declares a channel while recording.
//!
//! Reading order: [`files`] (the pool), `found` and `carried` (the segments that a start finds),
//! [`pins`] (the segments that are not overwritten). `making`, `in_place` and `renamer` make and
//! rename its files. [`direct_io`] is the I/O, [`flight`] knows the durable blocks, and [`job`]
//! does the I/O before and after a segment's use. [`stage`] writes records to segments and handles
//! a failing device. [`writer`] runs in a [`thread`]; [`registry`] has the channels. [`ram`] holds
//! records until an incident asks for them. [`meters`] has the statistics, [`flush`] the flushes.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

mod carried;
pub mod direct_io;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod faults;
pub mod files;
pub mod flight;
pub mod flush;
mod found;
mod in_place;
pub mod job;
mod latch;
pub mod making;
pub mod meters;
pub mod pins;
pub mod ram;
pub mod registry;
mod renamer;
pub mod segment;
pub mod stage;
pub mod thread;
pub mod writer;

use self::carried::Carried;
use self::direct_io::{Disk, DiskError};
#[cfg(test)]
use self::faults::Faults;
use self::files::Pool;
use self::flush::{Flush, Flushed};
use self::making::Making;
use self::meters::{Meters, WriterReport};
use self::ram::Ram;
pub use self::registry::ChannelStats;
use self::registry::{AddError, Registry};
use self::renamer::Renamer;
use self::segment::PoolError;
use self::stage::{Parts, Stage, buffer_sizes};
use self::thread::WriterThread;
use self::writer::Writer;
use super::channel::{Channel, Consumer, SharedChannels, open, open_shared};
use super::config::{ChannelConfig, ConfigError, RecorderConfig, Retention};
use super::control::{Control, Facts};
use super::incident::keeper::Keeper;
use super::ledger::Ledger;
use super::mcap::definitions::{DefinitionError, Definitions};
use super::mcap::encoder::Encoder;
use super::mcap::layout::LayoutError;
use super::mcap::resume::{Resumable, resumable};
use super::source::wall_ns;
use steadyio_core::diagnostic;
use steadyio_core::interrupt::Interrupt;
use steadyio_core::memory::MemoryError;

/// A recording could not be started. If the configuration was wrong, nothing was created.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A value that is not allowed.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Schemas or channels that are not allowed.
    #[error(transparent)]
    Definitions(#[from] DefinitionError),
    /// Sizes that are not allowed.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    #[error(transparent)]
    Memory(#[from] MemoryError),
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// Buffers and engine.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The writer thread.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The parts of a recorder that take long to make or may be forbidden. They are made before the
/// channels are known.
#[derive(Debug)]
pub struct Preparation {
    thread: WriterThread,
    pool: Pool,
}

impl Preparation {
    /// Prepares the writer thread, and makes the pool unless `stop` interrupts it. Returns `None`
    /// if the size of the pool depends on the channels. `note` receives messages about damaged
    /// segments and long operations.
    pub fn new(
        config: &RecorderConfig,
        note: &mut dyn FnMut(String),
        stop: &Interrupt,
    ) -> Result<Option<Preparation>, StartError> {
        let Some(segments) = config.check_pool()? else { return Ok(None) };
        let thread = WriterThread::prepare(config.writer)?;
        Ok(Some(Preparation { thread, pool: open_pool(config, segments, false, note, stop)? }))
    }
}

/// Makes a pool for later recordings, or changes its number of segments. It removes the oldest
/// surplus ones.
pub fn resize_pool(
    config: &RecorderConfig,
    note: &mut dyn FnMut(String),
    stop: &Interrupt,
) -> Result<Pool, StartError> {
    Ok(open_pool(config, config.check()?, true, note, stop)?)
}

fn open_pool(
    config: &RecorderConfig,
    segments: u64,
    shrink: bool,
    note: &mut dyn FnMut(String),
    stop: &Interrupt,
) -> Result<Pool, PoolError> {
    if let Some(shortage) = config.shortage(segments) {
        note(shortage);
    }
    let made = Making {
        dir: &config.dir,
        // At most 10,000; the configuration was checked.
        count: segments as usize,
        segment_bytes: config.segment_bytes,
        compressed: config.writer.compression.is_some(),
        discard_damaged: config.discard_damaged,
        keep_free_bytes: match config.retention {
            Retention::MinFreeBytes(bytes) => bytes,
            _ => 0,
        },
        shrink,
    };
    let pool = Pool::open(&made, note, stop)?;
    if let Some(cost) = config.cost_of_kept(pool.kept().1 as u64, pool.count() as u64) {
        note(cost);
    }
    Ok(pool)
}

/// A recording in progress.
#[derive(Debug)]
pub struct Recorder {
    facts: Facts,
    registry: Arc<Registry>,
    keeper: Arc<Keeper>,
    meters: Arc<Meters>,
    stop: Arc<AtomicBool>,
    /// The losses that flushes have reported.
    told_lost: Arc<AtomicU64>,
    thread: Option<WriterThread>,
}

/// The source of a recorder's pool.
struct PoolOrder<'a> {
    /// A pool that was made before.
    prepared: Option<Preparation>,
    /// The number of segments to make otherwise, unless `stop` is set.
    segments: u64,
    stop: &'a Interrupt,
}

/// The counters of a running recording.
#[derive(Debug)]
pub struct Stats<'a> {
    /// The channels, in the order of the configuration.
    pub channels: Vec<ChannelStats>,
    pub meters: &'a Meters,
}

fn encoder(config: &RecorderConfig, definitions: Definitions) -> Result<Encoder, StartError> {
    let (layout, largest) = (config.layout(&definitions)?, config.largest_layout(&definitions)?);
    let encoder = Encoder::with_room(layout, definitions, largest);
    Ok(match config.writer.compression {
        Some(compression) => encoder.compressing(compression)?,
        None => encoder,
    })
}

/// The newest segment, if this recording continues it. Otherwise each start would overwrite the
/// oldest one, even for few records.
fn resumed(pool: &Pool, encoder: &Encoder) -> Option<(Box<Resumable>, File)> {
    let file = pool.open_newest()?;
    let through_cache = File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
    let (definitions, layout) = (encoder.all_definitions(), encoder.layout());
    let found = resumable(&through_cache, definitions, layout, encoder.largest_layout());
    let found = found.ok()??;
    Some((Box::new(found), file))
}

pub(crate) fn random_id() -> io::Result<[u8; 16]> {
    let mut id = [0; 16];
    // SAFETY: the kernel fills the array, and gets its length.
    match unsafe { libc::getrandom(id.as_mut_ptr().cast(), id.len(), 0) } {
        16 => Ok(id),
        _ => Err(io::Error::last_os_error()),
    }
}

impl Recorder {
    /// Starts a recording, and returns it with its channels in the order of the configuration.
    /// `note` receives messages about long operations.
    pub fn start(
        config: &RecorderConfig,
        note: &mut dyn FnMut(String),
    ) -> Result<(Recorder, Vec<Channel>), StartError> {
        Recorder::start_unless(&Interrupt::default(), config, note)
    }

    /// Like [`Recorder::start`], but `stop` interrupts making the segments, which may take minutes.
    pub fn start_unless(
        stop: &Interrupt,
        config: &RecorderConfig,
        note: &mut dyn FnMut(String),
    ) -> Result<(Recorder, Vec<Channel>), StartError> {
        let segments = config.check()?;
        if config.shared_ring_bytes.is_some() {
            return Err(io::Error::other("the channels share a ring: start them together").into());
        }
        let channels = config.channels.iter().enumerate();
        let both = channels.map(|(at, channel)| open(channel, at, config.lock_memory));
        let both: Result<Vec<(Channel, Consumer)>, MemoryError> = both.collect();
        let (channels, consumers) = both?.into_iter().unzip();
        let order = PoolOrder { prepared: None, segments, stop };
        Ok((Recorder::start_with(consumers, order, config, note)?, channels))
    }

    /// Like [`Recorder::start_unless`], with one ring for all channels. `prepared` must have the
    /// same directory, pool and writer.
    pub fn start_shared(
        prepared: Option<Preparation>,
        stop: &Interrupt,
        config: &RecorderConfig,
        note: &mut dyn FnMut(String),
    ) -> Result<(Recorder, SharedChannels), StartError> {
        let segments = config.check()?;
        let bytes = config.shared_ring_bytes.unwrap_or(config.rings_bytes());
        let (channels, consumer) = open_shared(&config.channels, bytes, config.lock_memory)?;
        let order = PoolOrder { prepared, segments, stop };
        Ok((Recorder::start_with(vec![consumer], order, config, note)?, channels))
    }

    fn start_with(
        consumers: Vec<Consumer>,
        order: PoolOrder<'_>,
        config: &RecorderConfig,
        note: &mut dyn FnMut(String),
    ) -> Result<Recorder, StartError> {
        let definitions = config.definitions()?;
        let encoder = encoder(config, definitions.clone())?;
        let ledgers: Vec<Arc<Ledger>> =
            consumers.iter().flat_map(|consumer| consumer.ledgers.iter().cloned()).collect();
        let mut sizes = buffer_sizes(encoder.largest_layout());
        sizes.iter_mut().for_each(|(_, locked)| *locked &= config.lock_memory);
        let (thread, pool) = match order.prepared {
            Some(Preparation { thread, pool }) => (thread, Some(pool)),
            None => (WriterThread::prepare(config.writer)?, None),
        };
        let disk = Disk::new(config.writer.engine, &sizes)?;
        let held = config.writer.ram;
        let ram = held.map(|ram| Ram::new(ram, ledgers.clone(), config.lock_memory)).transpose()?;
        let pool = match pool {
            Some(pool) => pool,
            None => open_pool(config, order.segments, false, note, order.stop)?,
        };
        #[cfg(test)]
        let pool = if Faults::take_page_cache() { pool.through_page_cache() } else { pool };
        let meters = Arc::new(Meters::default());
        meters.missing_messages.store(pool.missing(), Ordering::Relaxed);
        let renamer = pool.has_unused().then(|| Renamer::start(Arc::clone(&meters)));
        let stop_writing = Arc::new(AtomicBool::new(false));
        // A window of the memory begins a segment.
        let resumed = if ram.is_none() { resumed(&pool, &encoder) } else { None };
        let own_schemas = usize::from(definitions.schema_count());
        let (encoder, recording_id) = match &resumed {
            Some((resumed, _)) => {
                (encoder.extended(resumed.definitions()), resumed.life.identity.recording_id)
            }
            None => (encoder, random_id()?),
        };
        let carried = Carried::find(&pool.newest_first(), recording_id);
        let latches = config.channels.iter().map(|channel| carried.latch(channel)).collect();
        let (registry, additions) = Registry::new(config, definitions, &ledgers, carried);
        let registry = Arc::new(registry);
        let (keeper, orders) = Keeper::new(config.dir.clone(), Arc::clone(&registry), held);
        let facts = Facts {
            recording_id,
            started_ns: wall_ns(),
            loss_window_ns: config.loss_window.as_nanos() as u64,
            segment_bytes: config.segment_bytes,
            segments: pool.count() as u64,
            ram: held,
        };
        let stage = Stage::new(Parts {
            encoder,
            disk,
            pool,
            renamer: renamer.transpose()?,
            ledgers,
            latches,
            meters: Arc::clone(&meters),
            loss_window: config.loss_window,
            flush_after: config.flush_after(),
            when_full: config.when_full,
            on_failure: config.on_failure,
            stop: Arc::clone(&stop_writing),
            recording_id: facts.recording_id,
            resumed,
            own_schemas,
        });
        let writer = Writer {
            consumers,
            additions,
            orders,
            stage,
            ram,
            poll: config.poll(),
            // At most 16 MiB; the configuration was checked.
            busy_bytes: config.unit_bytes as usize,
            stop: Arc::clone(&stop_writing),
            meters: Arc::clone(&meters),
        };
        let thread = thread.begin(writer)?;
        Ok(Recorder {
            facts,
            registry,
            keeper: Arc::new(keeper),
            meters,
            stop: stop_writing,
            told_lost: Arc::default(),
            thread: Some(thread),
        })
    }

    /// Declares a channel while the recorder runs, if channels have their own rings. It allocates
    /// and locks memory, so a real-time thread must not call it. `RecorderConfig::late` limits the
    /// number of such channels.
    pub fn add_channel(&self, config: &ChannelConfig) -> Result<Channel, AddError> {
        Ok(self.registry.add(config)?.0)
    }

    /// Declares a channel if channels share a ring. Returns its position among them.
    pub fn add_shared(
        &self,
        channels: &mut SharedChannels,
        config: &ChannelConfig,
    ) -> Result<usize, AddError> {
        self.registry.add_shared(channels, config)
    }

    /// The list of channels, to declare further ones or to read accounts. It outlives the recorder.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// The interface for requests of other threads and programs. It outlives the recorder.
    pub fn control(&self) -> Control {
        let (registry, meters) = (Arc::clone(&self.registry), Arc::clone(&self.meters));
        Control { registry, meters, keeper: Arc::clone(&self.keeper), facts: self.facts }
    }

    /// Takes and releases incidents. It outlives the recorder.
    pub fn keeper(&self) -> &Arc<Keeper> {
        &self.keeper
    }

    /// The counts of the records so far.
    pub fn stats(&self) -> Stats<'_> {
        Stats { channels: self.registry.channels(), meters: &self.meters }
    }

    /// The ledgers, in the order of the channels. They outlive the recorder.
    pub fn ledgers(&self) -> Vec<Arc<Ledger>> {
        self.registry.ledgers()
    }

    /// The statistics of the writer thread. They outlive the recorder.
    pub fn meters(&self) -> &Arc<Meters> {
        &self.meters
    }

    /// Waits until all records received before are durable. Only one flush reports a loss: the
    /// first that began after it or met it.
    pub fn flush(&self, timeout: Duration) -> Flushed {
        self.begin_flush().wait(timeout)
    }

    /// Like [`Recorder::flush`], but the caller does not borrow the recorder while it waits.
    pub fn begin_flush(&self) -> Flush {
        Flush::new(&self.registry.ledgers(), &self.told_lost)
    }

    /// Makes all appended records durable, and ends the segment. Later records are ignored. The
    /// report says whether everything is durable.
    pub fn finish(&mut self) -> io::Result<WriterReport> {
        self.keeper.close();
        self.stop.store(true, Ordering::Release);
        let thread = self.thread.take().ok_or_else(|| io::Error::other("finished already"))?;
        let report = thread.end();
        self.keeper.settle();
        report
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if self.thread.is_some() {
            match self.finish() {
                Ok(report) if report.not_durable == 0 => {}
                Ok(report) => diagnostic!("steadyio: {} records are lost", report.not_durable),
                Err(error) => diagnostic!("steadyio: the recording failed: {error}"),
            }
        }
    }
}
