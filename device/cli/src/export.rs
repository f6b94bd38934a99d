// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady export`: writes one MCAP file from the segments of a recording.

mod bag;

use std::fs;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{anyhow, bail, ensure};
use steadyio_core::diagnostic;
use steadyio_core::interrupt::Interrupt;
use steadyio_export::export::{Compression, Export, ExportError};
use steadyio_export::merge::HELD_BYTES_MAX;
use steadyio_export::summary::Summary;
use steadyio_export::survey::Survey;
use steadyio_recorder::mcap::names::is_segment;
use steadyio_recorder::outputs::replaces_recording;

use self::bag::Bag;
use crate::exit::{Failure, Status};
use crate::output::print;
use crate::pipe::Pipe;
use crate::progress::Pace;
use crate::quantity::size;
use crate::record_file::RecordFile;
use crate::selection::{Chosen, SelectionArguments, tell, text};

/// The buffer size of standard output.
const BUFFER_BYTES: usize = 64 << 10;
const MIB: f64 = 1_048_576.0;

const HELP: &str = "Exit status: 0 success; 1 failure, or nothing selected; 2 usage error; 3 \
finished, but durable data is missing (damaged blocks or segments, or data that a recorder has \
overwritten); 130 interrupted. Only status 0 and 3 leave an output file. With --output -, a reader \
that ends early is no failure.";

/// Merge a recording's segments into one compressed MCAP file, sorted by log time
///
/// Changes nothing and takes no lock. Works while a recorder runs, and after a power cut without
/// recovery. Exports every whole block of the segments. If a recorder runs, this includes at least
/// all blocks that were durable when the export began.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Arguments {
    /// Directory of a recording, or a segment
    #[arg(required = true, value_name = "PATH")]
    path: Vec<PathBuf>,
    /// Output file, replaced when the export is complete; - for standard output, which gets
    /// messages while they are read
    #[arg(short, long, value_name = "FILE|-", required_unless_present = "ros2")]
    output: Option<PathBuf>,
    /// Make a bag for ros2 bag play: a new directory with metadata.yaml. All topics must be of ROS 2
    #[arg(long, value_name = "DIR", conflicts_with = "output")]
    ros2: Option<PathBuf>,
    /// Begin another file of the bag after SIZE bytes of messages, before compression
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "ros2")]
    split: Option<u64>,
    #[command(flatten)]
    select: SelectionArguments,
    /// Compression of the chunks: lz4 takes less CPU time, zstd less space
    #[arg(long, default_value = "zstd", value_parser = ["zstd", "lz4", "none"])]
    compression: String,
    /// Print JSON instead of text (docs/spec/export-1.schema.json)
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<Status, Failure> {
    let stop = Interrupt::on_signals().map_err(Failure::with(Status::Failed))?;
    arguments.check().map_err(Failure::with(Status::Usage))?;
    let chosen = arguments.select.choose(&arguments.path, &stop)?;
    let target = arguments.target();
    target.check_recording(&chosen).map_err(Failure::with(Status::Usage))?;
    let (summary, files) = match arguments.write(&chosen, &stop) {
        Err(Stopped::ReaderEnded) => return Ok(reader_ended(&chosen)),
        Err(Stopped::Failure(failure)) => return Err(failure),
        Ok(written) => written,
    };
    if matches!(target, Target::Pipe) {
        diagnostic!("steady: {}", to_text(&target, &summary, files));
    }
    tell(&summary.damage);
    Ok(if summary.damage.is_any() { Status::Flawed } else { Status::Done })
}

/// An export was not completed.
enum Stopped {
    /// The reader of the pipe has closed it.
    ReaderEnded,
    Failure(Failure),
}

/// The exit status after the reader ended. It covers the losses known by then.
fn reader_ended(chosen: &Chosen) -> Status {
    diagnostic!("steady: standard output: its reader ended before the export did");
    let Chosen { survey, selection, .. } = chosen;
    let is_whole = survey.unreadable.is_empty() && survey.losses_in(selection).next().is_none();
    if is_whole { Status::Done } else { Status::Flawed }
}

/// The destination of an export.
#[derive(Clone, Copy)]
enum Target<'a> {
    Pipe,
    File(&'a Path),
    Bag(&'a Path),
}

impl Target<'_> {
    /// Checks the destination for this recording.
    fn check_recording(&self, chosen: &Chosen) -> anyhow::Result<()> {
        match self {
            Target::Pipe => Ok(()),
            Target::File(path) => check_is_of_no_recording(path, &chosen.survey),
            Target::Bag(_) => bag::check_channels(chosen),
        }
    }

    /// The option, for errors.
    fn option(&self) -> String {
        match self {
            Target::Pipe => "standard output".into(),
            Target::File(path) => format!("--output {}", path.display()),
            Target::Bag(path) => format!("--ros2 {}", path.display()),
        }
    }

    fn name(&self) -> String {
        match self {
            Target::Pipe => "standard output".into(),
            Target::File(path) | Target::Bag(path) => path.display().to_string(),
        }
    }
}

impl Arguments {
    fn target(&self) -> Target<'_> {
        match (&self.ros2, &self.output) {
            (Some(path), _) => Target::Bag(path),
            (None, Some(path)) if path.as_os_str() != "-" => Target::File(path),
            _ => Target::Pipe,
        }
    }

    /// Checks the output before anything is read.
    fn check(&self) -> anyhow::Result<()> {
        ensure!(self.split != Some(0), "--split 0: must be at least 1");
        match self.target() {
            Target::Bag(path) => return bag::check(path),
            Target::File(path) => return check_output(path),
            Target::Pipe => {}
        }
        ensure!(
            !self.json,
            "--json: standard output is the export with --output - (its metadata steadyio.export \
             has the numbers)"
        );
        ensure!(
            !io::stdout().is_terminal(),
            "--output -: standard output is a terminal: write to a file or a pipe"
        );
        Ok(())
    }

    fn compression(&self) -> Compression {
        match self.compression.as_str() {
            "lz4" => Compression::Lz4,
            "none" => Compression::None,
            _ => Compression::Zstd,
        }
    }
}

/// Checks the output file. Only a regular file may be replaced.
fn check_output(path: &Path) -> anyhow::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => {
            bail!(
                "--output {}: exists and is not a regular file (- is standard output)",
                path.display()
            )
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(anyhow!("--output {}: {error}", path.display())),
    }
}

/// Checks that the output is no file of a recording, and has no name that a recorder would take for
/// a segment's.
fn check_is_of_no_recording(path: &Path, survey: &Survey) -> anyhow::Result<()> {
    let named_so = path.file_name().is_some_and(is_segment);
    let is_same = |segment: &Path| {
        let inode = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
        inode(segment).is_some() && inode(segment) == inode(path)
    };
    let segments = survey.segments.iter();
    let is_segment = segments
        .flat_map(|segment| segment.copies.iter().chain([&segment.path]))
        .chain(survey.unreadable.iter().map(|segment| &segment.path))
        .any(|path| is_same(path));
    ensure!(
        !named_so && !is_segment,
        "--output {}: is a segment, or has the name of one: give another name",
        path.display()
    );
    ensure!(
        !replaces_recording(path, None),
        "--output {}: is a file of a recording, or has the name of one: give another name",
        path.display()
    );
    Ok(())
}

impl Arguments {
    fn write(&self, chosen: &Chosen, stop: &Interrupt) -> Result<(Summary, usize), Stopped> {
        let (began, mut pace) = (Instant::now(), Pace::new());
        let mut progress = |done: u64, all: u64| {
            if pace.is_due(began.elapsed()) {
                let (done, all) = (done as f64 / MIB, all as f64 / MIB);
                let seconds = began.elapsed().as_secs();
                diagnostic!("steady: read {done:.0} of {all:.0} MiB in {seconds} s");
            }
        };
        let export = Export {
            survey: &chosen.survey,
            selection: &chosen.selection,
            compression: self.compression(),
            profile: self.ros2.as_ref().map(|_| "ros2"),
            held_bytes_max: HELD_BYTES_MAX,
            stop,
            progress: &mut progress,
        };
        let target = self.target();
        let usage = |error: io::Error| {
            let error = anyhow::Error::from(error).context(target.option());
            Stopped::Failure(Failure { status: Status::Usage, source: error })
        };
        // Before the output gets its name: a failure leaves none.
        let mut printed = Ok(());
        let mut say = |summary: &Summary, files: usize| {
            printed = self.say(&target, summary, files);
            printed.is_ok().then_some(()).ok_or_else(|| anyhow!("the summary was not printed"))
        };
        let written = match target {
            Target::Pipe => stream(export, stop).map(|summary| (summary, 1)),
            Target::File(path) => RecordFile::create(path).map_err(usage)?.fill(|out| {
                let summary = export.write(&mut *out)?;
                out.flush().map_err(ExportError::Write)?;
                say(&summary, 1).map(|()| (summary, 1))
            }),
            Target::Bag(path) => {
                let bag = Bag::create(path, self.split.unwrap_or(u64::MAX)).map_err(usage)?;
                bag.fill(export, say)
            }
        };
        printed.map_err(Stopped::Failure)?;
        written.map_err(|error| self.stopped(chosen, stop, error))
    }

    fn say(&self, target: &Target<'_>, summary: &Summary, files: usize) -> Result<(), Failure> {
        let text = match self.json {
            true => serde_json::to_string_pretty(summary).map_err(Failure::with(Status::Failed))?,
            false => to_text(target, summary, files),
        };
        print(&(text + "\n"))
    }

    fn stopped(&self, chosen: &Chosen, stop: &Interrupt, error: anyhow::Error) -> Stopped {
        let target = self.target();
        let is_pipe = matches!(target, Target::Pipe);
        let of_output = match error.downcast_ref() {
            Some(ExportError::Write(error))
                if is_pipe && error.kind() == io::ErrorKind::BrokenPipe =>
            {
                return Stopped::ReaderEnded;
            }
            Some(ExportError::Write(_) | ExportError::Mcap(_)) => true,
            of_export => of_export.is_none(),
        };
        let is_nothing = matches!(error.downcast_ref(), Some(ExportError::Nothing));
        let left = if is_pipe { "the stream has no end" } else { "no file was made" };
        let source = if stop.requested() {
            anyhow!("interrupted; {left}")
        } else if is_nothing {
            chosen.nothing()
        } else if of_output {
            error.context(target.option())
        } else {
            error
        };
        let status = if stop.requested() { Status::Interrupted } else { Status::Failed };
        Stopped::Failure(Failure { status, source })
    }
}

/// Writes an export to standard output. After a failure, the buffer is dropped, because the output
/// is incomplete anyway.
fn stream(export: Export<'_>, stop: &Interrupt) -> anyhow::Result<Summary> {
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, Pipe::stdout(stop)?);
    let written = export.stream(&mut out);
    if written.is_ok() {
        out.flush().map_err(ExportError::Write)?;
    } else {
        let _ = out.into_parts();
    }
    Ok(written?)
}

fn to_text(target: &Target<'_>, summary: &Summary, files: usize) -> String {
    let topics = summary.channels.iter().filter(|channel| channel.messages > 0).count();
    let late = match summary.out_of_order {
        0 => String::new(),
        late => format!("; {late} stand behind later ones, but the index has their order"),
    };
    let files = if files > 1 { format!(" in {files} files") } else { String::new() };
    let name = target.name();
    format!(
        "{name}: {} messages of {topics} topics, log times {} to {}, {:.2} MiB ({}){files}{late}",
        summary.messages,
        text(summary.start_ns),
        text(summary.end_ns),
        summary.bytes as f64 / MIB,
        summary.compression,
    )
}
