// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--input`: records of other programs (`docs/spec/record-framing-1.md`).

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::ensure;
use steadyio_recorder::config::ChannelConfig;
use steadyio_recorder::stream::input::{Input, InputFraming, Notice, StreamSource};

/// Records of other programs.
#[derive(clap::Args)]
pub struct InputArguments {
    /// Record what other programs send: - is stdin, unix:PATH a socket for several producers,
    /// anything else a FIFO or a file. Ends with the stream; a socket with Ctrl-C
    #[arg(long, value_name = "-|PATH|unix:PATH", value_parser = input)]
    #[arg(conflicts_with_all = ["period", "total", "duration"])]
    input: Option<Input>,
    /// One record per line, or frames with topics and times (docs/spec/record-framing-1.md)
    #[arg(long, default_value = "lines", value_parser = ["lines", "frames"], requires = "input")]
    framing: String,
    /// Topic of the lines
    #[arg(long, value_name = "NAME", default_value = "/lines", requires = "input")]
    topic: String,
    /// On a socket: wait until N producers have declared their topics
    #[arg(long, value_name = "N", default_value = "1", requires = "input")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64))]
    producers: u16,
    /// When a ring is half full, block the producers; nothing is lost. Without it they never block,
    /// and losses are counted
    #[arg(long, requires = "input")]
    pub block: bool,
    /// Measure each append; costs four system calls per record. Without --input it is always done
    #[arg(long, requires = "input")]
    pub measure_calls: bool,
}

/// An input that is open.
pub struct OpenInput {
    pub source: StreamSource,
    /// Producers that were rejected.
    pub rejected: Arc<AtomicU64>,
    /// The recording starts when this many have declared their topics.
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
    /// Whether topics and their longest records are what a stream says, not the command line.
    pub fn declares_topics(&self) -> bool {
        self.framing == "frames"
    }

    /// None without `--input`.
    pub fn open(
        &self,
        line_bytes_max: u64,
        longest_bytes: u64,
    ) -> anyhow::Result<Option<OpenInput>> {
        let Some(input) = &self.input else { return Ok(None) };
        let socket = matches!(input, Input::Socket(_));
        let producers = usize::from(self.producers);
        ensure!(socket || producers == 1, "--producers {producers}: needs --input unix:PATH");
        let framing = match self.framing.as_str() {
            "frames" => InputFraming::Frames,
            _ => InputFraming::Lines(ChannelConfig {
                topic: self.topic.clone(),
                message_encoding: String::new(),
                schema: None,
                record_bytes_max: line_bytes_max,
                period: None,
                ring_bytes: 0,
            }),
        };
        let rejected = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&rejected);
        let tell = Box::new(move |notice| match notice {
            Notice::Rejected(text) => {
                counted.fetch_add(1, Ordering::Relaxed);
                eprintln!("steady: rejected {text}");
            }
            Notice::Accepting(text) => eprintln!("steady: {text}"),
        });
        let source = StreamSource::open(input, framing, longest_bytes, tell)?;
        Ok(Some(OpenInput { source, rejected, producers }))
    }
}
