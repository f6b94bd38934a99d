// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady cat`: prints the messages of a recording, one line each.

mod line;

use std::collections::HashMap;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, anyhow};
use steadyio_core::interrupt::Interrupt;
use steadyio_export::merge::{HELD_BYTES_MAX, Item, Merge, Next};
use steadyio_export::summary::Damage;
use steadyio_recorder::mcap::reading::Readable;

use self::line::Line;
use crate::exit::{Failure, Status};
use crate::pipe::Pipe;
use crate::selection::{Chosen, SelectionArguments, tell};

const BUFFER_BYTES: usize = 64 << 10;

const HELP: &str = "Exit status: 0 success; 1 failure, or nothing selected; 2 usage error; 3 \
finished, but durable data is missing; 130 interrupted. A reader that ends early, such as head, is \
no failure.";

/// Print the messages of a recording in order of log time, one per line
///
/// A line is the log time in seconds, the topic and the message: JSON and text as they are, other
/// messages in hexadecimal, at most 32 bytes. Changes nothing and takes no lock. Works while a
/// recorder runs, and after a power cut without recovery.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Arguments {
    /// Directory of a recording, or a segment
    #[arg(required = true, value_name = "PATH")]
    path: Vec<PathBuf>,
    #[command(flatten)]
    select: SelectionArguments,
    /// Print a JSON object per line, with whole messages (docs/reference/steady-cat.md)
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<Status, Failure> {
    let stop = Interrupt::on_signals().map_err(Failure::with(Status::Failed))?;
    let chosen = arguments.select.choose(&arguments.path, &stop)?;
    let pipe = Pipe::stdout(&stop).map_err(Failure::with(Status::Failed))?;
    let mut cat = Cat {
        merge: Merge::new(&chosen.survey, chosen.selection.clone(), HELD_BYTES_MAX),
        channels: HashMap::new(),
        out: BufWriter::with_capacity(BUFFER_BYTES, pipe),
        json: arguments.json,
    };
    let status = match cat.copy(&stop) {
        Err(error) if stop.requested() => {
            // Dropping the writer would try again.
            let _ = cat.out.into_parts();
            return Err(Failure {
                status: Status::Interrupted,
                source: error.context("interrupted"),
            });
        }
        Err(error) if is_closed(&error) => Status::Done,
        Err(source) => return Err(Failure { status: Status::Failed, source }),
        Ok(0) => return Err(Failure { status: Status::Failed, source: chosen.nothing() }),
        Ok(_) => Status::Done,
    };
    let Chosen { survey, selection, .. } = &chosen;
    let damage = Damage::of(survey, selection, cat.merge.missing);
    tell(&damage);
    Ok(if damage.is_any() { Status::Flawed } else { status })
}

/// Whether the reader has ended.
fn is_closed(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

struct Cat {
    merge: Merge,
    /// The topics and encodings by position of the segment, in the order of its definitions.
    channels: HashMap<usize, Vec<(String, String)>>,
    out: BufWriter<Pipe>,
    json: bool,
}

impl Cat {
    /// Prints all messages, and returns their number.
    fn copy(&mut self, stop: &Interrupt) -> anyhow::Result<u64> {
        let mut messages = 0;
        while let Some(item) = self.merge.step()? {
            match item {
                Item::Segment(at, found) => {
                    self.channels.insert(at, channels(&found)?);
                }
                Item::Message(message) => {
                    self.print(&message).map_err(named_unless_closed)?;
                    messages += 1;
                }
                Item::Read(_) if stop.requested() => return Err(anyhow!("by a signal")),
                Item::Read(_) => {}
            }
        }
        self.out.flush().map_err(named_unless_closed)?;
        Ok(messages)
    }

    fn print(&mut self, message: &Next) -> io::Result<()> {
        let Some((topic, encoding)) =
            self.channels.get(&message.segment).and_then(|channels| channels.get(message.slot))
        else {
            return Ok(());
        };
        let data = self.merge.payload(message);
        let line = Line { topic, encoding, message, data };
        if self.json { line.write_json(&mut self.out) } else { line.write_text(&mut self.out) }
    }
}

fn named_unless_closed(error: io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe => error.into(),
        _ => anyhow!("standard output: {error}"),
    }
}

fn channels(found: &Readable) -> anyhow::Result<Vec<(String, String)>> {
    let (_, channels) = found.definitions.specs().context("channels of a segment are malformed")?;
    Ok(channels.into_iter().map(|channel| (channel.topic, channel.message_encoding)).collect())
}
