// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady record --input`: records of other programs (`docs/spec/record-framing-1.md`).

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, bail, ensure};
use steadyio_core::diagnostic;
use steadyio_recorder::config::{CHANNELS_MAX, ChannelConfig, LateRoom};
use steadyio_recorder::stream::filter::{TopicFilter, TopicPattern};
use steadyio_recorder::stream::frames::Undeclared;
use steadyio_recorder::stream::input::{Input, InputFraming, Notice, StreamSource};

use super::encoding::EncodingArguments;
use super::peek;
use crate::quantity::size;

/// The default of --late-topics.
const LATE_TOPICS: u64 = 64;
/// The default of --late-topics for MCAP, whose writers declare a channel just before its first
/// message.
const LATE_TOPICS_OF_MCAP: u64 = 1_000;
/// The default of --late-definitions per topic.
const LATE_DEFINITION_BYTES: u64 = 4 << 10;
/// The default of --late-definitions is at most this fraction of a segment.
const LATE_DEFINITIONS_SHARE: u64 = 16;

/// Records of other programs.
#[derive(clap::Args)]
pub struct InputArguments {
    /// Record the output of other programs: - for standard input, unix:PATH for a socket with
    /// several producers, PATH for a FIFO or a file. Recording stops at the end of the stream, or
    /// with Ctrl-C for a socket
    #[arg(long, value_name = "-|PATH|unix:PATH", value_parser = input)]
    #[arg(conflicts_with_all = ["period", "total", "duration"])]
    input: Option<Input>,
    /// Input format: one record per line; frames with topics and times
    /// (docs/spec/record-framing-1.md); or MCAP, as a stream or file of any writer
    #[arg(long, default_value = "lines", value_parser = ["lines", "frames", "mcap"])]
    #[arg(requires = "input")]
    framing: String,
    /// Topic of the lines
    #[arg(long, value_name = "NAME", default_value = "/lines", requires = "input")]
    topic: String,
    #[command(flatten)]
    encoding: EncodingArguments,
    /// With a socket, wait until N producers have declared their topics
    #[arg(long, value_name = "N", default_value = "1", requires = "input")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64))]
    producers: u16,
    /// Maximum number of topics declared while recording (frames: [default: 64], mcap: [default:
    /// 1000], or 0 with --keep-time)
    #[arg(long, value_name = "N", requires = "input")]
    #[arg(value_parser = clap::value_parser!(u16).range(0..=9_999))]
    late_topics: Option<u16>,
    /// Total memory for names and schemas of topics declared while recording [default: 4KiB for
    /// each, at most a sixteenth of a segment]
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "input")]
    late_definitions: Option<u64>,
    /// Write the last message of TOPIC again into each new segment, so that a ring that has wrapped
    /// can be replayed (/tf_static, for example). Repeatable
    #[arg(long, value_name = "TOPIC", requires = "input")]
    latched: Vec<String>,
    /// Record only these topics of frames or MCAP; * matches any characters [default: all]
    #[arg(long, value_name = "TOPIC", num_args = 1.., requires = "input")]
    topics: Vec<String>,
    /// Leave these topics out, even of those in --topics; * matches any characters
    #[arg(long, value_name = "TOPIC", num_args = 1.., requires = "input")]
    exclude_topics: Vec<String>,
    /// Block the producers when a ring is half full, so that nothing is lost. Without --block,
    /// producers never block, and losses are counted
    #[arg(long, requires = "input")]
    pub block: bool,
    /// Measure each append, at the cost of four system calls per record. Without --input, each
    /// append is always measured
    #[arg(long, requires = "input")]
    pub measure_calls: bool,
}

/// An open input.
pub struct OpenInput {
    pub source: StreamSource,
    /// The number of rejected producers.
    pub rejected: Arc<AtomicU64>,
    /// The number of producers that must have declared their topics before the recording starts.
    pub producers: usize,
}

fn input(text: &str) -> Result<Input, String> {
    match (text, text.strip_prefix("unix:")) {
        ("-", _) => Ok(Input::Stdin),
        ("" | "unix:", _) => Err("must be -, a path, or unix: and a path".into()),
        (_, Some(path)) => Ok(Input::Socket(PathBuf::from(path))),
        (path, None) => Ok(Input::Path(PathBuf::from(path))),
    }
}

impl InputArguments {
    /// Whether the stream, and not the command line, declares the topics and their longest records.
    pub fn declares_topics(&self) -> bool {
        self.framing != "lines"
    }

    fn is_mcap(&self) -> bool {
        self.framing == "mcap"
    }

    /// The room for channels that are declared later. Lines have one topic, so they need none. With
    /// a kept time (`keep_time`), the size of the pool is computed from the channels known at the
    /// start.
    pub fn late(&self, keep_time: bool, declared: usize, segment_bytes: u64) -> LateRoom {
        if !self.declares_topics() {
            return LateRoom::default();
        }
        let left = CHANNELS_MAX.saturating_sub(declared as u64);
        let usual = if self.is_mcap() { LATE_TOPICS_OF_MCAP } else { LATE_TOPICS };
        let default = if keep_time { 0 } else { usual.min(left) };
        let channels = self.late_topics.map_or(default, u64::from);
        let most = segment_bytes / LATE_DEFINITIONS_SHARE;
        let default = most.min(channels * LATE_DEFINITION_BYTES);
        let definition_bytes = self.late_definitions.unwrap_or(default);
        LateRoom { channels, definition_bytes }
    }

    /// Whether there is an `--input`.
    pub fn is_given(&self) -> bool {
        self.input.is_some()
    }

    /// Checks the input as far as possible without opening it.
    pub fn check(&self) -> anyhow::Result<()> {
        let Some(input) = &self.input else { return Ok(()) };
        let (socket, producers) = (matches!(input, Input::Socket(_)), self.producers);
        ensure!(socket || producers == 1, "--producers {producers}: needs --input unix:PATH");
        ensure!(
            !self.is_mcap() || !self.encoding.is_given(),
            "--encoding: MCAP says the encoding of each channel (with --framing mcap, leave it out)"
        );
        ensure!(
            self.declares_topics() || self.topics.len() + self.exclude_topics.len() == 0,
            "--topics: lines have one topic (with --framing frames or mcap, choose among theirs)"
        );
        self.encoding.load(self.declares_topics())?;
        input.check()?;
        peek::check(input, &self.framing)
    }

    /// The channel of lines; None if producers declare their topics.
    pub fn lines(&self, line_bytes_max: u64) -> anyhow::Result<Option<ChannelConfig>> {
        if self.declares_topics() {
            return Ok(None);
        }
        let Undeclared { message_encoding, schema } = self.encoding.load(false)?;
        let other = self.latched.iter().find(|latched| **latched != self.topic);
        if let Some(other) = other {
            bail!("--latched {other}: the topic of the lines is {} (--topic)", self.topic);
        }
        let lines = ChannelConfig {
            topic: self.topic.clone(),
            message_encoding,
            schema,
            metadata: Vec::new(),
            record_bytes_max: line_bytes_max,
            period: None,
            ring_bytes: 0,
        };
        Ok(Some(if self.latched.is_empty() { lines } else { lines.latched() }))
    }

    fn filter(&self) -> TopicFilter {
        let patterns =
            |texts: &[String]| texts.iter().map(|text| TopicPattern::new(text)).collect();
        let (included, excluded) = (patterns(&self.topics), patterns(&self.exclude_topics));
        TopicFilter { included, excluded }
    }

    /// Opens the input for producers.
    pub fn open(&self, line_bytes_max: u64, longest_bytes: u64) -> anyhow::Result<OpenInput> {
        let input = self.input.as_ref().context("no --input")?;
        let producers = usize::from(self.producers);
        let framing = match self.lines(line_bytes_max)? {
            Some(lines) => InputFraming::Lines(lines),
            None if self.is_mcap() => InputFraming::Mcap,
            None => InputFraming::Frames(self.encoding.load(true)?),
        };
        let rejected = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&rejected);
        let tell = Box::new(move |notice| match notice {
            Notice::Rejected(text) => {
                counted.fetch_add(1, Ordering::Relaxed);
                diagnostic!("steady: rejected {text}");
            }
            Notice::Accepting(text) => diagnostic!("steady: {text}"),
        });
        let source = StreamSource::open(input, framing, longest_bytes, tell)?;
        let source = source.latching(self.latched.clone()).filtering(self.filter());
        Ok(OpenInput { source, rejected, producers })
    }
}
