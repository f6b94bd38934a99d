// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line of `steady record`, and the plan that it makes.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use anyhow::{Context, anyhow, bail, ensure};
use steadyio_bench::recording::session::{CallerConfig, Plan};
use steadyio_core::interrupt::Interrupt;
use steadyio_recorder::config::{
    BLOCK_BYTES, ChannelConfig, ConfigError, EngineChoice, IoPriority, LateRoom, OnFailure,
    RamConfig, RecorderConfig, Retention, WhenFull, WriterConfig, defaults, record_bytes_max,
};
use steadyio_recorder::mcap::compression::Compression;
use steadyio_recorder::outputs::replaces_recording;
use steadyio_recorder::pool::Preparation;
use steadyio_recorder::source::{Periodic, Source};

use super::input::{InputArguments, OpenInput};
use super::messages::{failure, note};
use super::named;
use super::rate::RateLimit;
use super::sizing::SizingArguments;
use super::viewer::Viewer;
use crate::exit::{Failure, RECORD_HELP, Status};
use crate::quantity::{duration, size};

/// The time that --plan measures, and the number of rotations in it.
const MEASURE_TIME: Duration = Duration::from_secs(10);
const MEASURE_ROTATIONS: u64 = 8;
/// The default of --incident-last.
const INCIDENT_LAST: Duration = Duration::from_secs(30);
/// The default of --incident-after.
const INCIDENT_AFTER: Duration = Duration::from_secs(5);
const TOPIC: &str = "/periodic";

/// Record periodic or streamed data into a ring of MCAP files, without blocking the caller
///
/// Copies each record into a ring in locked memory. A writer thread writes the records to
/// preallocated segments, and overwrites the oldest segment first. Each segment is an MCAP file.
/// Without --input, a built-in source produces one record per period.
#[derive(clap::Args)]
#[command(after_help = RECORD_HELP)]
pub struct Arguments {
    /// Directory of the recording, created if missing
    #[arg(long)]
    dir: PathBuf,
    #[command(flatten)]
    input: InputArguments,
    #[command(flatten)]
    pub sizing: SizingArguments,
    /// Create the segments, complete those left unfinished by a power cut, and record nothing.
    /// Remove surplus segments: first those without records, then the oldest
    #[arg(long, conflicts_with_all = ["plan", "out", "account_log", "control"])]
    pub prepare: bool,
    /// Time between records; 0 means as fast as the recorder takes them
    #[arg(long, value_name = "TIME", default_value = "5ms", value_parser = duration)]
    period: Duration,
    /// Size of a record; for an --input of lines, size of the longest line
    #[arg(long, default_value = "16KiB", value_parser = size)]
    size: u64,
    /// Stop after SIZE bytes of records
    #[arg(long, value_name = "SIZE", value_parser = size)]
    total: Option<u64>,
    /// Stop after TIME
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "total")]
    duration: Option<Duration>,
    /// Maximum time span of records lost in a power cut [default: 500ms]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    loss_window: Option<Duration>,
    /// Size of a segment [default: 64MiB]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    segment_size: Option<u64>,
    /// Number of segments to keep [default: 8]
    #[arg(long, value_name = "N", group = "keep")]
    segments: Option<u64>,
    /// Keep as many segments as fit into SIZE
    #[arg(long, value_name = "SIZE", value_parser = size, group = "keep")]
    keep_size: Option<u64>,
    /// Keep as many segments as possible with SIZE left free on the file system
    #[arg(long, value_name = "SIZE", value_parser = size, group = "keep")]
    keep_free: Option<u64>,
    /// Keep enough segments to hold TIME of records
    #[arg(long, value_name = "TIME", value_parser = duration, group = "keep")]
    keep_time: Option<Duration>,
    /// Stop when all segments are full, instead of overwriting the oldest
    #[arg(long)]
    stop_when_full: bool,
    /// Action when a write or sync fails: wait and continue once the device works again, or exit
    /// [default: wait]
    #[arg(long, value_parser = ["wait", "exit"])]
    on_failure: Option<String>,
    /// Size of the largest write [default: 1MiB]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    unit: Option<u64>,
    /// Size of the longest record, at most 64MiB [default: as much as fits into --unit].
    /// Locks memory for four such records, or for two above 16MiB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    record_max: Option<u64>,
    /// Profile in the header of each segment, for example ros2
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Overwrite damaged segments instead of renaming them
    #[arg(long)]
    discard_damaged: bool,
    /// Size of the ring between caller and writer [default: one second of records]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    ring: Option<u64>,
    /// Compression of the blocks, in the writer: lz4 takes less CPU time, zstd less space
    /// [default: none]
    #[arg(long, value_parser = ["zstd", "lz4", "none"])]
    compression: Option<String>,
    /// I/O interface of the writer; best is io_uring where the kernel allows it [default:
    /// best]
    #[arg(long, value_parser = ["best", "io_uring", "pwrite"])]
    engine: Option<String>,
    /// Run the caller under SCHED_FIFO at this priority
    #[arg(long, value_name = "1..99", value_parser = fifo_priority())]
    priority: Option<u8>,
    /// Run the caller on CPU N only
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,
    /// Run the writer under SCHED_FIFO at this priority
    #[arg(long, value_name = "1..99", value_parser = fifo_priority())]
    writer_priority: Option<u8>,
    /// Run the writer on CPU N only
    #[arg(long, value_name = "N")]
    writer_cpu: Option<usize>,
    /// I/O priority of the writer, as in ionice(1); 1:0 is the highest
    #[arg(long, value_name = "CLASS:LEVEL", value_parser = io_priority)]
    writer_ionice: Option<IoPriority>,
    /// Do not lock memory; page faults may then delay the caller
    #[arg(long)]
    no_lock: bool,
    /// Report the state of the recording on the Unix socket PATH, as JSON (docs/spec/control-1.md)
    #[arg(long, value_name = "PATH")]
    pub control: Option<PathBuf>,
    /// Show the recording to Foxglove at HOST:PORT while it is written. Runs steady-live of the
    /// Python package, without real-time priority, until the recording ends
    #[arg(long, value_name = "HOST:PORT", value_parser = host_and_port)]
    #[arg(conflicts_with_all = ["plan", "prepare"])]
    live: Option<String>,
    /// Time span of an incident that SIGUSR1 or --incident-rate keeps [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    incident_last: Option<Duration>,
    /// Keep an incident when TOPIC has fewer (TOPIC<HZ) or more (TOPIC>HZ) messages than HZ per
    /// second. They are counted over 1 s, or the time of 4 messages of that rate if that is
    /// longer. Another incident comes when the rate was in range for so long. Several limits:
    /// repeat it
    #[arg(long, value_name = "TOPIC<HZ")]
    pub incident_rate: Vec<RateLimit>,
    /// Hold records in SIZE of locked memory, and write only those of incidents, from
    /// --incident-last before to --incident-after after each
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "plan")]
    ram: Option<u64>,
    /// Time after an incident that belongs to it [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "ram")]
    incident_after: Option<Duration>,
    /// Reject an incident when N are kept, and write nothing for it [default: when fewer
    /// than two segments would be left]
    #[arg(long, value_name = "N", requires = "ram", value_parser = clap::value_parser!(u64).range(1..))]
    incidents_max: Option<u64>,
    /// Print JSON instead of text (docs/spec/recording-1.schema.json)
    #[arg(long)]
    pub json: bool,
    /// Write JSON to FILE (docs/spec/recording-1.schema.json)
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write a line to FILE every millisecond: monotonic time in ns, then the numbers of records
    /// received, written, durable and lost so far
    #[arg(long, value_name = "FILE")]
    pub account_log: Option<PathBuf>,
    /// Print no status line on a terminal
    #[arg(long)]
    pub quiet: bool,
}

fn fifo_priority() -> clap::builder::RangedI64ValueParser<u8> {
    clap::value_parser!(u8).range(1..=99)
}

fn io_priority(text: &str) -> Result<IoPriority, String> {
    let wrong = || "must be CLASS:LEVEL, 1 to 3 and 0 to 7".to_string();
    let (class, level) = text.split_once(':').ok_or_else(wrong)?;
    let number = |text: &str| text.parse().map_err(|_| wrong());
    let priority = IoPriority { class: number(class)?, level: number(level)? };
    match (priority.class, priority.level) {
        (1..=3, 0..=7) => Ok(priority),
        _ => Err(wrong()),
    }
}

fn host_and_port(text: &str) -> Result<String, String> {
    let parts = text.rsplit_once(':');
    let is_valid =
        parts.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    if is_valid { Ok(text.into()) } else { Err("must be HOST:PORT, as 127.0.0.1:8765".into()) }
}

/// Everything a recording needs.
pub struct Prepared {
    pub plan: Plan,
    pub source: Box<dyn Source + Send>,
    /// The pool, if it was made before producers could connect.
    pub pool: Option<Preparation>,
    /// The number of rejected producers.
    pub rejected: Arc<AtomicU64>,
}

impl Arguments {
    /// Prepares the recording and its source; None if interrupted before the producers had declared
    /// topics.
    pub fn prepare(&self, stop: &Interrupt) -> Result<Option<Prepared>, Failure> {
        if self.input.is_given() {
            return self.prepare_input(stop);
        }
        let prepared = self.prepare_periodic().map_err(Failure::with(Status::Usage))?;
        prepared.plan.caller.check().map_err(failure)?;
        Ok(Some(prepared))
    }

    /// Makes the pool before producers can connect. It may take minutes, in which they would fill
    /// the pipe.
    fn prepare_input(&self, stop: &Interrupt) -> Result<Option<Prepared>, Failure> {
        let config = self.input_config().map_err(Failure::with(Status::Usage))?;
        self.caller().check().map_err(failure)?;
        let pool = Preparation::new(&config, &mut note, stop);
        let pool = pool.map_err(|error| failure(error.into()))?;
        let longest_bytes = record_bytes_max(config.unit_bytes, config.longest_record_bytes);
        let opened = self.input.open(self.size, longest_bytes);
        let opened = opened.map_err(Failure::with(Status::Usage))?;
        let OpenInput { mut source, rejected, producers } = opened;
        let check = |channels: &[ChannelConfig]| {
            let config = self.with_channels(config.clone(), channels.to_vec());
            self.check(&config).map_err(|error| error.to_string())
        };
        let declared = source.declare(producers, &check, stop);
        let declared = declared.map_err(Failure::with(Status::Failed))?;
        let Some(channels) = declared else { return Ok(None) };
        let config = RecorderConfig { profile: self.profile_or(source.profile()), ..config };
        let config = self.with_channels(config, channels);
        self.check(&config).map_err(Failure::with(Status::Usage))?;
        self.tell_of_ring(&config);
        let plan = Plan {
            config,
            caller: self.caller(),
            period: Duration::ZERO,
            total_bytes: None,
            back_pressure: self.input.block,
            measure_calls: self.input.measure_calls,
        };
        Ok(Some(Prepared { plan, source: Box::new(source), pool, rejected }))
    }

    /// The given profile, or that of the input.
    fn profile_or(&self, of_input: &str) -> String {
        self.profile.clone().unwrap_or_else(|| of_input.into())
    }

    /// The configuration with these channels. One thread reads the whole input.
    fn with_channels(
        &self,
        config: RecorderConfig,
        channels: Vec<ChannelConfig>,
    ) -> RecorderConfig {
        let segment_bytes = self.segment_size.unwrap_or(defaults::SEGMENT_BYTES);
        let late = self.input.late(self.keep_time.is_some(), channels.len(), segment_bytes);
        let wanted = self.ring.unwrap_or_else(|| defaults::shared_ring_bytes(&channels));
        let shared_ring_bytes = Some(wanted);
        let config = RecorderConfig { channels, late, shared_ring_bytes, ..config };
        let shared_ring_bytes = Some(self.ring_bytes(&config, wanted));
        RecorderConfig { shared_ring_bytes, ..config }
    }

    /// The given size of the ring, or as much of the default as may be locked.
    fn ring_bytes(&self, config: &RecorderConfig, wanted: u64) -> u64 {
        self.ring.unwrap_or_else(|| config.fitting_ring_bytes(wanted))
    }

    /// Reports a ring that is smaller because of the limit on locked memory.
    fn tell_of_ring(&self, config: &RecorderConfig) {
        let wanted = defaults::shared_ring_bytes(&config.channels);
        let ring = config.rings_bytes();
        if self.ring.is_none() && ring < wanted {
            note(format!(
                "--ring {ring}, not {wanted}: no more memory may be locked (ulimit -l, or \
                 LimitMEMLOCK= in a systemd unit)"
            ));
        }
    }

    /// The configuration without the channels of frames, which the producers declare.
    fn input_config(&self) -> anyhow::Result<RecorderConfig> {
        self.input.check()?;
        let config = self.config();
        match self.input.lines(self.size)? {
            Some(lines) => self.check(&self.with_channels(config.clone(), vec![lines]))?,
            None => self.check_pool(&config)?,
        }
        Ok(config)
    }

    /// Checks that no output replaces a file of a recording.
    pub fn check_outputs(&self) -> anyhow::Result<()> {
        for (option, path) in [("--out", &self.out), ("--account-log", &self.account_log)] {
            let Some(path) = path else { continue };
            ensure!(
                !replaces_recording(path, Some(&self.dir)),
                "{option} {}: is a file of a recording, or has the name of one: give another name",
                path.display()
            );
        }
        Ok(())
    }

    /// Starts the live view, if one is wanted.
    pub fn viewer(&self, stop: &Interrupt) -> Result<Option<Viewer>, Failure> {
        let start = |listen: &String| {
            let viewer = Viewer::start(&self.dir, listen, stop);
            viewer.with_context(|| format!("--live {listen}"))
        };
        let status = |error| match stop.requested() {
            true => Failure { status: Status::Interrupted, source: error },
            false => Failure { status: Status::Usage, source: error },
        };
        self.live.as_ref().map(start).transpose().map_err(status)
    }

    /// The length of an incident that a signal keeps.
    pub fn incident_last(&self) -> Duration {
        self.incident_last.unwrap_or(INCIDENT_LAST)
    }

    fn ram(&self) -> Option<RamConfig> {
        let after = self.incident_after.unwrap_or(INCIDENT_AFTER);
        let (before, incidents_max) = (self.incident_last(), self.incidents_max);
        self.ram.map(|bytes| RamConfig { bytes, before, after, incidents_max })
    }

    /// The configuration of `--prepare`.
    pub fn pool(&self) -> Result<RecorderConfig, Failure> {
        let config = || {
            ensure!(
                !self.input.is_given() || self.keep_time.is_none(),
                "--keep-time: the number of segments depends on the producers' topics (with \
                 --prepare, give --segments)"
            );
            // It locks no memory. A later recorder may have a higher limit.
            let mut config = RecorderConfig { lock_memory: false, ..self.config() };
            config.writer.ram = None;
            self.check(&config)?;
            Ok(config)
        };
        config().map_err(Failure::with(Status::Usage))
    }

    fn prepare_periodic(&self) -> anyhow::Result<Prepared> {
        ensure!(self.size > 0, "--size 0: must be at least 1");
        let records = self.records()?;
        let total_bytes = match records {
            u64::MAX => None,
            records => Some(records.checked_mul(self.size).ok_or_else(|| anyhow!("too long"))?),
        };
        let plan = Plan {
            config: self.config(),
            caller: self.caller(),
            period: self.period,
            total_bytes,
            back_pressure: self.period.is_zero(),
            measure_calls: true,
        };
        self.check(&plan.config)?;
        self.tell_of_ring(&plan.config);
        let source = Box::new(Periodic::new(self.period, usize::try_from(self.size)?, records));
        Ok(Prepared { plan, source, pool: None, rejected: Arc::default() })
    }

    fn caller(&self) -> CallerConfig {
        CallerConfig { fifo_priority: self.priority, cpu: self.cpu }
    }

    /// `--plan`: prints the ring and the loss window that suffice.
    pub fn size(&self, stop: &Interrupt) -> Result<String, Failure> {
        let measure = self.prepare_measuring().map_err(Failure::with(Status::Usage))?;
        let text = self.sizing.run(self.size, measure, stop, self.json);
        let status = if stop.requested() { Status::Interrupted } else { Status::Failed };
        text.map_err(Failure::with(status))
    }

    /// A short recording with several rotations, and a ring ten times as large as usual.
    fn prepare_measuring(&self) -> anyhow::Result<(Plan, Box<dyn Source + Send>)> {
        ensure!(!self.period.is_zero(), "--period 0: --plan needs a rate");
        let duration = self.duration.unwrap_or(MEASURE_TIME);
        let records = u64::try_from(duration.as_nanos() / self.period.as_nanos())?;
        let mut config = self.config();
        let bytes = records.saturating_mul(self.size);
        let segment = (bytes / MEASURE_ROTATIONS).next_multiple_of(BLOCK_BYTES);
        config.segment_bytes =
            self.segment_size.unwrap_or(segment.max(config.unit_bytes.saturating_mul(4)));
        let large = defaults::shared_ring_bytes(&config.channels).saturating_mul(10);
        config.channels[0].ring_bytes = self.ring_bytes(&config, large);
        self.check(&config)?;
        let plan = Plan {
            config,
            caller: self.caller(),
            period: self.period,
            total_bytes: Some(bytes),
            back_pressure: false,
            measure_calls: true,
        };
        let source = Periodic::new(self.period, usize::try_from(self.size)?, records);
        Ok((plan, Box::new(source)))
    }

    /// The number of records; u64::MAX without --total and --duration.
    fn records(&self) -> anyhow::Result<u64> {
        match (self.total, self.duration) {
            (Some(total), _) if total < self.size => {
                bail!("--total {total}: must be at least one record (--size {})", self.size)
            }
            (Some(total), _) => Ok(total / self.size),
            (_, Some(_)) if self.period.is_zero() => {
                bail!("--duration: needs a --period; give --total instead")
            }
            (_, Some(duration)) => {
                let records = duration.as_nanos() / self.period.as_nanos();
                ensure!(records > 0, "--duration {duration:?}: must be at least one period");
                Ok(u64::try_from(records)?)
            }
            (None, None) => Ok(u64::MAX),
        }
    }

    /// Runs the recorder's own check; errors name options.
    fn check(&self, config: &RecorderConfig) -> anyhow::Result<()> {
        self.check_by(|| config.check().map(drop))
    }

    /// Checks everything that does not depend on the channels.
    fn check_pool(&self, config: &RecorderConfig) -> anyhow::Result<()> {
        self.check_by(|| config.check_pool().map(drop))
    }

    fn check_by(&self, check: impl Fn() -> Result<(), ConfigError>) -> anyhow::Result<()> {
        named::cpu("--cpu", self.cpu)?;
        named::cpu("--writer-cpu", self.writer_cpu)?;
        let keep = match (self.keep_size, self.keep_free, self.keep_time) {
            (Some(bytes), _, _) => format!("--keep-size {bytes}"),
            (_, Some(bytes), _) => format!("--keep-free {bytes}"),
            (_, _, Some(time)) => format!("--keep-time {time:?}"),
            _ => "--segments".into(),
        };
        let declared = self.input.declares_topics();
        check().map_err(|error| named::option(error, &keep, declared))
    }

    fn config(&self) -> RecorderConfig {
        let mut config = RecorderConfig {
            dir: self.dir.clone(),
            profile: self.profile.clone().unwrap_or_default(),
            channels: vec![self.channel()],
            loss_window: self.loss_window.unwrap_or(defaults::LOSS_WINDOW),
            unit_bytes: self.unit.unwrap_or(defaults::UNIT_BYTES),
            late: LateRoom::default(),
            longest_record_bytes: self.record_max.unwrap_or(0),
            shared_ring_bytes: None,
            segment_bytes: self.segment_size.unwrap_or(defaults::SEGMENT_BYTES),
            retention: self.retention(),
            on_failure: match self.on_failure.as_deref() {
                Some("exit") => OnFailure::Exit,
                _ => OnFailure::Wait,
            },
            when_full: if self.stop_when_full { WhenFull::Stop } else { WhenFull::Recycle },
            discard_damaged: self.discard_damaged,
            writer: WriterConfig {
                engine: match self.engine.as_deref() {
                    Some("io_uring") => EngineChoice::IoUring,
                    Some("pwrite") => EngineChoice::Pwrite,
                    _ => EngineChoice::Best,
                },
                fifo_priority: self.writer_priority,
                cpu: self.writer_cpu,
                io_priority: self.writer_ionice,
                ram: self.ram(),
                compression: match self.compression.as_deref() {
                    Some("zstd") => Some(Compression::Zstd),
                    Some("lz4") => Some(Compression::Lz4),
                    _ => None,
                },
            },
            lock_memory: !self.no_lock,
        };
        let wanted = defaults::shared_ring_bytes(&config.channels);
        config.channels[0].ring_bytes = self.ring_bytes(&config, wanted);
        config
    }

    fn channel(&self) -> ChannelConfig {
        let period = (!self.period.is_zero()).then_some(self.period);
        ChannelConfig {
            period,
            ring_bytes: self.ring.unwrap_or(0),
            ..ChannelConfig::new(TOPIC, self.size)
        }
    }

    fn retention(&self) -> Retention {
        match (self.keep_size, self.keep_free, self.keep_time) {
            (Some(bytes), _, _) => Retention::Bytes(bytes),
            (_, Some(bytes), _) => Retention::MinFreeBytes(bytes),
            (_, _, Some(time)) => Retention::Time(time),
            _ => Retention::Segments(self.segments.unwrap_or(defaults::SEGMENTS)),
        }
    }
}
