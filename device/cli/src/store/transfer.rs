// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady store put` and `get`: copies between files and extents.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use serde_json::json;
use steadyio_core::diagnostic;
use steadyio_core::interrupt::Interrupt;
use steadyio_store::AlignedBuffer;
use steadyio_store::error::StoreError;
use steadyio_store::storage::file::FileStorage;
use steadyio_store::storage::{BLOCK_BYTES, Commands};
use steadyio_store::store::{ExtentOptions, Store};

use super::{check_count, failure, interrupted, named, open_to_change, open_to_read, sync_folder};
use crate::destination::{check_output, is_standard_output, standard_output};
use crate::exit::{Failure, Status};
use crate::output::print_done;
use crate::progress::Pace;
use crate::quantity::size;
use crate::record_file::RecordFile;

const SCHEMA: &str = "steadyio.store-transfer/1";
/// The approximate size of the part of a file that is in memory.
const PIECE_BYTES: usize = 4 << 20;
const STANDARD: &str = "-";
/// The interval of checks for an interrupt.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

#[derive(clap::Args)]
pub struct Put {
    /// Device or file of the store
    #[arg(value_name = "DEVICE")]
    device: PathBuf,
    /// Number of an extent and its input file, or - for standard input; several pairs become durable
    /// together
    #[arg(value_names = ["ID", "FILE"], required = true, num_args = 2..)]
    pairs: Vec<OsString>,
    /// Capacity of a new extent [default: the length of FILE]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    size: Option<u64>,
    /// Allocate two places for a new extent, so that its next contents always have room
    #[arg(long)]
    twice: bool,
    /// Create a new extent without a checksum of its contents
    #[arg(long)]
    no_checksum: bool,
    /// Print JSON instead of text (bytes, commands and time)
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub struct Get {
    /// Device or file of the store
    #[arg(value_name = "DEVICE")]
    device: PathBuf,
    /// Number of the extent
    #[arg(value_name = "ID")]
    id: u64,
    /// Output file, or - for standard output; the file is replaced when the contents are complete
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Copy the contents even if their checksum is wrong
    #[arg(long)]
    no_verify: bool,
    /// Make the output file durable before the command ends
    #[arg(long)]
    sync: bool,
    /// Print JSON instead of text (bytes, commands and time of the load)
    #[arg(long)]
    json: bool,
}

/// The transferred extents, and the time of the device.
#[derive(Default)]
struct Transfers {
    /// The number and the size of each.
    extents: Vec<(u64, u64)>,
    commands: Commands,
    /// The time in the device's reads, writes and flushes.
    device: Duration,
}

impl Transfers {
    fn text(&self) -> String {
        let Commands { reads, writes, flushes } = self.commands;
        let took = format!(
            "{reads} reads, {writes} writes, {flushes} flushes in {:.3} ms\n",
            self.device.as_secs_f64() * 1e3
        );
        let line = |(id, bytes): &(u64, u64)| format!("extent {id}: {bytes} bytes");
        let lines: Vec<String> = self.extents.iter().map(line).collect();
        match lines.as_slice() {
            [one] => format!("{one}; {took}"),
            _ => format!("{}\n{} extents; {took}", lines.join("\n"), lines.len()),
        }
    }

    /// JSON with `id` and `bytes` of a single extent, or `extents` for several.
    fn json(&self) -> String {
        let mut document = json!({
            "schema": SCHEMA,
            "commands": self.commands,
            "device_ns": self.device.as_nanos() as u64,
        });
        match self.extents.as_slice() {
            [(id, bytes)] => {
                document["id"] = json!(id);
                document["bytes"] = json!(bytes);
            }
            several => {
                let one = |(id, bytes): &(u64, u64)| json!({ "id": id, "bytes": bytes });
                document["extents"] = several.iter().map(one).collect();
            }
        }
        format!("{document:#}\n")
    }
}

/// Prints progress at growing intervals, and checks for an interrupt.
struct Way<'a> {
    device: &'a Path,
    stop: &'a Interrupt,
    began: Instant,
    pace: Pace,
}

impl<'a> Way<'a> {
    fn new(device: &'a Path, stop: &'a Interrupt) -> Way<'a> {
        Way { device, stop, began: Instant::now(), pace: Pace::new() }
    }

    fn go_on(&mut self, done: u64, all: Option<u64>) -> Result<(), Failure> {
        if self.stop.requested() {
            return Err(interrupted(self.device));
        }
        if self.pace.is_due(self.began.elapsed()) {
            let of = all.map(|all| format!(" of {}", all >> 20)).unwrap_or_default();
            diagnostic!("steady: {}{of} MiB in {} s", done >> 20, self.began.elapsed().as_secs());
        }
        Ok(())
    }
}

/// A buffer, as long as a short transfer, because making memory takes longer than a small I/O. One
/// more byte detects the end of a file.
fn buffer(store: &Store<FileStorage>, length: Option<u64>) -> Result<AlignedBuffer, Failure> {
    let piece = store.piece_bytes(PIECE_BYTES);
    let needed = length.and_then(|length| usize::try_from(length.saturating_add(1)).ok());
    let bytes =
        needed.map_or(piece, |needed| needed.next_multiple_of(BLOCK_BYTES as usize).min(piece));
    AlignedBuffer::new(bytes, false).map_err(Failure::with(Status::Failed))
}

/// The file for an extent.
struct Input {
    id: u64,
    file: PathBuf,
    source: File,
    length: Option<u64>,
}

pub fn put(arguments: &Put, stop: &Interrupt) -> Result<Status, Failure> {
    let Put { device, .. } = arguments;
    // Before the device is opened, so that a missing file is reported first.
    let mut inputs = inputs(&arguments.pairs)?;
    let mut store = open_to_change(device)?;
    for input in &inputs {
        prepare(arguments, &mut store, input)?;
    }
    let mut done = Transfers::default();
    let before = store.commands();
    for input in &mut inputs {
        done.extents.push((input.id, write(arguments, &mut store, input, &mut done.device, stop)?));
    }
    let began = Instant::now();
    store.flush().map_err(failure(device))?;
    done.device += began.elapsed();
    done.commands = store.commands().since(before);
    print_done(&if arguments.json { done.json() } else { done.text() });
    Ok(Status::Done)
}

/// The pairs of a number and a readable file.
fn inputs(words: &[OsString]) -> Result<Vec<Input>, Failure> {
    let usage = |text: String| Failure::with(Status::Usage)(anyhow!(text));
    let pairs = words.chunks_exact(2);
    if let [last] = pairs.remainder() {
        return Err(usage(format!("{}: a number without a file", last.to_string_lossy())));
    }
    check_count(pairs.len()).map_err(Failure::with(Status::Usage))?;
    let mut inputs: Vec<Input> = Vec::with_capacity(pairs.len());
    for pair in pairs {
        let (id, file) = (pair[0].to_string_lossy(), PathBuf::from(&pair[1]));
        let Ok(id) = id.parse() else {
            return Err(usage(format!("ID {id}: must be a number of 0 to {}", u64::MAX)));
        };
        let (source, length) = source(&file)?;
        let is_same = |input: &Input| length.is_none() && same_file(&input.source, &source);
        if inputs.iter().any(|input| input.id == id || is_same(input)) {
            return Err(usage(format!("{id} {}: is there twice", file.display())));
        }
        inputs.push(Input { id, file, source, length });
    }
    Ok(inputs)
}

/// Whether both are one pipe or terminal.
fn same_file(one: &File, other: &File) -> bool {
    let number = |file: &File| file.metadata().ok().map(|found| (found.dev(), found.ino()));
    number(one).is_some_and(|one| Some(one) == number(other))
}

/// The source, with its length if known.
fn source(file: &Path) -> Result<(File, Option<u64>), Failure> {
    if file == Path::new(STANDARD) {
        return Ok((named(file, io::stdin().as_fd().try_clone_to_owned())?.into(), None));
    }
    // With O_NONBLOCK, because Ctrl-C would not end the open of a FIFO without a writer.
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(OFlags::NONBLOCK.bits() as i32);
    let opened = named(file, options.open(file))?;
    let found = named(file, opened.metadata())?;
    if found.is_dir() {
        return named(file, Err(io::ErrorKind::IsADirectory.into()));
    }
    Ok((opened, found.is_file().then_some(found.len())))
}

/// The extent, which exists or is made now.
fn prepare(arguments: &Put, store: &mut Store<FileStorage>, input: &Input) -> Result<(), Failure> {
    let Put { device, size, twice, no_checksum, .. } = arguments;
    let Input { id, file, length, .. } = input;
    match (store.extent(*id), size.or(*length)) {
        (Ok(_), _) if size.is_some() || *twice || *no_checksum => {
            Err(Failure::with(Status::Usage)(anyhow!(
                "{}: extent {id} exists (--size, --twice and --no-checksum are for new ones)",
                device.display()
            )))
        }
        (Ok(extent), _) => match length {
            Some(bytes) if *bytes > extent.bytes => {
                let bytes = *bytes;
                let extent_bytes = extent.bytes;
                Err(failure(device)(StoreError::TooLong { id: *id, bytes, extent_bytes }))
            }
            _ => Ok(()),
        },
        (Err(_), None) => Err(Failure::with(Status::Usage)(anyhow!(
            "{}: extent {id} does not exist (--size makes one with that much room)",
            device.display()
        ))),
        (Err(_), Some(0)) => Err(Failure::with(Status::Usage)(match size {
            Some(_) => anyhow!("--size 0: must be at least 1"),
            None => anyhow!("{}: is empty (--size gives extent {id} room)", file.display()),
        })),
        (Err(_), Some(bytes)) => {
            let options = ExtentOptions { bytes, twice: *twice, checked: !no_checksum };
            store.create_extent(*id, &options).map_err(failure(device))
        }
    }
}

/// Writes, and returns the number of bytes. Adds the time on the device.
fn write(
    arguments: &Put,
    store: &mut Store<FileStorage>,
    input: &mut Input,
    time: &mut Duration,
    stop: &Interrupt,
) -> Result<u64, Failure> {
    let device = &arguments.device;
    let mut buffer = buffer(store, input.length)?;
    let (mut way, mut bytes) = (Way::new(device, stop), 0);
    let began = Instant::now();
    let mut unloading = store.begin_unload(input.id).map_err(failure(device))?;
    *time += began.elapsed();
    loop {
        let filled = named(&input.file, fill(&mut input.source, &mut buffer, stop))?;
        way.go_on(bytes, input.length)?;
        let began = Instant::now();
        unloading.append(&buffer[..filled]).map_err(failure(device))?;
        *time += began.elapsed();
        bytes += filled as u64;
        if filled < buffer.len() {
            break;
        }
    }
    unloading.finish().map_err(failure(device))?;
    Ok(bytes)
}

/// Reads until the end, until the buffer is full, or until an interrupt.
fn fill(source: &mut File, buffer: &mut [u8], stop: &Interrupt) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() && !stop.requested() {
        // A read of a pipe would continue after a signal.
        let mut ready = [PollFd::new(&*source, PollFlags::IN)];
        match poll(&mut ready, Some(&LOOK_EVERY)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        match source.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(bytes) => filled += bytes,
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}

pub fn get(arguments: &Get, stop: &Interrupt) -> Result<Status, Failure> {
    let Get { device, id, file, json, .. } = arguments;
    let to_standard = file == Path::new(STANDARD) || is_standard_output(file);
    if to_standard && *json {
        return Err(Failure::with(Status::Usage)(anyhow!(
            "--json: standard output has the contents; give a file for them"
        )));
    }
    if !to_standard {
        check_output(file, device).map_err(Failure::with(Status::Usage))?;
    }
    let mut store = open_to_read(device)?;
    store.extent(*id).map_err(failure(device))?;
    let transfer = if to_standard {
        let mut out = standard_output().map_err(Failure::with(Status::Failed))?;
        read(arguments, &mut store, &mut out, stop).map_err(Broken::into_failure)?
    } else {
        let out = named(file, RecordFile::create(file))?;
        let load = |out: &mut io::BufWriter<&mut File>| read(arguments, &mut store, out, stop);
        let loaded = if arguments.sync { out.fill(load) } else { out.fill_unsynced(load) };
        let transfer = loaded.map_err(Broken::into_failure)?;
        if arguments.sync && file.is_file() {
            named(file, sync_folder(file))?;
        }
        transfer
    };
    if !to_standard {
        print_done(&if *json { transfer.json() } else { transfer.text() });
    }
    Ok(Status::Done)
}

/// The reason why copying ended early, for an error that also names the file.
enum Broken {
    Out(io::Error),
    Other(Failure),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Broken {
        Broken::Out(error)
    }
}

impl Broken {
    fn into_failure(self) -> Failure {
        match self {
            Broken::Out(error) => Failure::with(Status::Failed)(
                anyhow::Error::from(error).context("writing the contents"),
            ),
            Broken::Other(failure) => failure,
        }
    }
}

fn read(
    arguments: &Get,
    store: &mut Store<FileStorage>,
    out: &mut dyn Write,
    stop: &Interrupt,
) -> Result<Transfers, Broken> {
    let Get { device, id, no_verify, .. } = arguments;
    let of_store = |error| Broken::Other(failure(device)(error));
    let length = store.extent(*id).map_err(of_store)?.valid_bytes;
    let mut buffer = buffer(store, Some(length)).map_err(Broken::Other)?;
    let before = store.commands();
    let (mut way, mut bytes, mut time) = (Way::new(device, stop), 0, Duration::ZERO);
    let mut loading = store.begin_load(*id).map_err(of_store)?;
    if *no_verify {
        loading = loading.unchecked();
    }
    loop {
        let began = Instant::now();
        let piece = loading.next(&mut buffer).map_err(of_store)?;
        time += began.elapsed();
        if piece.is_empty() {
            break;
        }
        out.write_all(piece)?;
        bytes += piece.len() as u64;
        way.go_on(bytes, Some(loading.valid_bytes())).map_err(Broken::Other)?;
    }
    let commands = store.commands().since(before);
    Ok(Transfers { extents: vec![(*id, bytes)], commands, device: time })
}
