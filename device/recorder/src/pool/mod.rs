// SPDX-License-Identifier: MIT OR Apache-2.0
//! The recorder: channels that never block, and a thread that writes their records.
//!
//! Life of a recording: [`Recorder::start`] checks the configuration, prepares the writer thread,
//! makes the pool and starts the thread; channels append; [`Recorder::stats`] returns counters at
//! any time; [`Recorder::finish`] makes the rest durable and ends the segment. Dropping a recorder
//! does what `finish` does, without a report.
//!
//! Channels may be declared while recording: [`Recorder::add_channel`].
//!
//! Reading order: [`files`] (the pool), `found` and `carried` (the segments that a start finds),
//! [`pins`] (the segments that are not overwritten). `making`, `in_place` and `renamer` make and
//! rename its files. [`direct_io`] is the I/O, [`flight`] knows the durable blocks, and [`job`]
//! does the I/O besides records. [`stage`] takes records to segments and handles a failing device.
//! [`writer`] runs in a [`thread`]; [`registry`] has the channels. [`meters`] has the statistics,
//! [`flush`] the flushes.

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
pub mod making;
pub mod meters;
pub mod pins;
pub mod registry;
mod renamer;
pub mod stage;
pub mod thread;
pub mod writer;

use self::carried::Carried;
use self::direct_io::{Disk, DiskError};
#[cfg(test)]
use self::faults::Faults;
use self::files::{Making, Pool, PoolError};
use self::flush::{Flush, Flushed};
use self::meters::{Meters, WriterReport};
use self::registry::{AddError, Registry};
use self::renamer::Renamer;
use self::stage::{Parts, Stage, buffer_sizes};
use self::thread::WriterThread;
use self::writer::Writer;
use super::channel::{Channel, Consumer, SharedChannels, open, open_shared};
use super::config::{ChannelConfig, ConfigError, RecorderConfig, Retention};
use super::control::{Control, Facts};
use super::incident::keeper::Keeper;
use super::ledger::{Account, Ledger};
use super::mcap::definitions::{DefinitionError, Definitions};
use super::mcap::encoder::Encoder;
use super::mcap::layout::LayoutError;
use super::mcap::resume::{Resumable, resumable};
use super::source::wall_ns;
use steadyio_core::diagnostic;
use steadyio_core::interrupt::Interrupt;
use steadyio_core::memory::MemoryError;

/// A recording could not be started. Nothing was created if the configuration was wrong.
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

/// What takes long or may be forbidden, made before the channels are known.
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

/// Makes a pool for later recordings, or changes how many segments it has: of too many the oldest
/// are removed.
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
        // At most 10,000: checked.
        count: segments as usize,
        segment_bytes: config.segment_bytes,
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
    /// Losses that a flush has told of.
    told_lost: Arc<AtomicU64>,
    thread: Option<WriterThread>,
}

/// Where a recorder gets its pool from.
struct PoolOrder<'a> {
    /// If it was made before.
    prepared: Option<Preparation>,
    /// How many to make if not, unless told to stop.
    segments: u64,
    stop: &'a Interrupt,
}

/// What became of the records of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelStats {
    pub topic: String,
    pub account: Account,
}

/// Counters of a running recording.
#[derive(Debug)]
pub struct Stats<'a> {
    /// By channel, in the order of the configuration.
    pub channels: Vec<ChannelStats>,
    pub meters: &'a Meters,
}

fn encoder(config: &RecorderConfig, definitions: Definitions) -> Result<Encoder, StartError> {
    let (layout, largest) = (config.layout(&definitions)?, config.largest_layout(&definitions)?);
    Ok(Encoder::with_room(layout, definitions, largest))
}

/// The newest segment, if this recording continues it. Else each start would take the oldest one,
/// however little comes.
fn resumed(pool: &Pool, encoder: &Encoder) -> Option<(Box<Resumable>, File)> {
    let file = pool.open_newest()?;
    let through_cache = File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
    let found = resumable(&through_cache, encoder.all_definitions(), encoder.layout()).ok()??;
    Some((Box::new(found), file))
}

fn random_id() -> io::Result<[u8; 16]> {
    let mut id = [0; 16];
    // SAFETY: the kernel fills the array, whose length it gets.
    match unsafe { libc::getrandom(id.as_mut_ptr().cast(), id.len(), 0) } {
        16 => Ok(id),
        _ => Err(io::Error::last_os_error()),
    }
}

impl Recorder {
    /// Starts a recording, and returns it with its channels in the order of the configuration.
    /// `note` reports what takes long.
    pub fn start(
        config: &RecorderConfig,
        note: &mut dyn FnMut(String),
    ) -> Result<(Recorder, Vec<Channel>), StartError> {
        Recorder::start_unless(&Interrupt::default(), config, note)
    }

    /// The same, but `stop` interrupts making the segments, which may take minutes.
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

    /// The same with one ring for all channels. `prepared` must be for the same directory, pool and
    /// writer.
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
        let resumed = resumed(&pool, &encoder);
        let recording_id = match &resumed {
            Some((resumed, _)) => resumed.life.identity.recording_id,
            None => random_id()?,
        };
        let carried = Carried::find(&pool.newest_first(), recording_id);
        let latches = config.channels.iter().map(|channel| carried.latch(channel)).collect();
        let (registry, additions) = Registry::new(config, definitions, &ledgers, carried);
        let registry = Arc::new(registry);
        let (keeper, orders) = Keeper::new(config.dir.clone(), Arc::clone(&registry));
        let facts = Facts {
            recording_id,
            started_ns: wall_ns(),
            loss_window_ns: config.loss_window.as_nanos() as u64,
            segment_bytes: config.segment_bytes,
            segments: pool.count() as u64,
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
        });
        let writer = Writer {
            consumers,
            additions,
            orders,
            stage,
            poll: config.poll(),
            // At most 16 MiB: checked.
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

    /// Declares a channel while the recorder runs; of channels with a ring of their own. It
    /// allocates and locks memory: not for a real-time thread. `RecorderConfig::late` bounds how
    /// many there may be.
    pub fn add_channel(&self, config: &ChannelConfig) -> Result<Channel, AddError> {
        Ok(self.registry.add(config)?.0)
    }

    /// The same of channels that share a ring; returns its position among them.
    pub fn add_shared(
        &self,
        channels: &mut SharedChannels,
        config: &ChannelConfig,
    ) -> Result<usize, AddError> {
        self.registry.add_shared(channels, config)
    }

    /// The channels, to declare further ones or to read accounts; it outlives the recorder.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// What other threads and programs may ask; it outlives the recorder.
    pub fn control(&self) -> Control {
        let (registry, meters) = (Arc::clone(&self.registry), Arc::clone(&self.meters));
        Control { registry, meters, keeper: Arc::clone(&self.keeper), facts: self.facts }
    }

    /// Takes and releases incidents; it outlives the recorder.
    pub fn keeper(&self) -> &Arc<Keeper> {
        &self.keeper
    }

    /// What became of the records so far.
    pub fn stats(&self) -> Stats<'_> {
        Stats { channels: self.registry.channels(), meters: &self.meters }
    }

    /// The accounts, in the order of the channels; they outlive the recorder.
    pub fn ledgers(&self) -> Vec<Arc<Ledger>> {
        self.registry.ledgers()
    }

    /// Statistics of the writer thread; they outlive the recorder.
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

    /// Makes durable what was appended before, and ends the segment. Later records are ignored.
    /// The report says whether everything is durable.
    pub fn finish(&mut self) -> io::Result<WriterReport> {
        self.keeper.close();
        self.stop.store(true, Ordering::Release);
        let thread = self.thread.take().ok_or_else(|| io::Error::other("finished already"))?;
        thread.end()
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
