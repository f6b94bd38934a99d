// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady direct read` and `write`: copies between a device and a file.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, ensure};
use steadyio_core::diagnostic;
use steadyio_core::interrupt::Interrupt;
use steadyio_direct::disk::Disk;
use steadyio_direct::mapping::Mapping;

use crate::destination::{check_output, is_standard_output, standard_output};
use crate::exit::{Failure, Status};
use crate::progress::Pace;
use crate::quantity;
use crate::record_file::RecordFile;

/// The size of a transfer; a multiple of every block size.
const CHUNK: usize = 4 << 20;

/// Copy data from a device to a file
#[derive(clap::Args)]
pub struct ReadArguments {
    /// Block device, chardiskN or ngXnY, by name or node
    #[arg(value_name = "DEVICE")]
    device: PathBuf,
    /// Output file, or - for standard output; the file appears when it is complete
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Start offset on the device [default: 0, or the first region]
    #[arg(long, value_name = "SIZE", value_parser = quantity::size)]
    offset: Option<u64>,
    /// Number of bytes [default: up to the end of the device or region]
    #[arg(long, value_name = "SIZE", value_parser = quantity::size)]
    bytes: Option<u64>,
}

/// Copy data from a file to a device
#[derive(clap::Args)]
pub struct WriteArguments {
    /// Block device, chardiskN or ngXnY, by name or node
    #[arg(value_name = "DEVICE")]
    device: PathBuf,
    /// Input file: a regular file whose length is a multiple of the device's block size
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Start offset on the device
    #[arg(long, value_name = "SIZE", value_parser = quantity::size, default_value = "0")]
    offset: u64,
    /// Allow overwriting the data on this device, for example mmcblk0
    #[arg(long, value_name = "NAME")]
    destroy_data: Option<String>,
}

pub fn read(arguments: &ReadArguments) -> Result<Status, Failure> {
    let ReadArguments { device, file, offset, .. } = arguments;
    let mut disk = super::open(device, false)?;
    let (offset, rest) = super::rest(&disk, *offset, false);
    let bytes = arguments.bytes.unwrap_or(rest);
    super::check_range(&disk, device, (offset, bytes), false)
        .map_err(Failure::with(Status::Usage))?;
    let (stop, memory) = (super::stop()?, memory_for(&mut disk)?);
    let range = (offset, bytes);
    let read_to = |out: &mut dyn Write| read_to(&disk, &memory, device, range, out, &stop);
    if file.as_os_str() == "-" || is_standard_output(file) {
        let mut out = standard_output().map_err(Failure::with(Status::Failed))?;
        let read = read_to(&mut out);
        return read.map(|()| Status::Done).map_err(|broken| broken.failure("standard output"));
    }
    check_output(file, device).map_err(Failure::with(Status::Usage))?;
    let name = file.display().to_string();
    let out = RecordFile::create(file).with_context(|| name.clone());
    let out = out.map_err(Failure::with(Status::Usage))?;
    out.fill(|out| read_to(out)).map_err(|broken| broken.failure(&name))?;
    Ok(Status::Done)
}

/// The reason why copying ended early.
enum Broken {
    /// Of the device, or an interrupt.
    Device(Failure),
    /// Of the file that is copied to or from.
    Other(io::Error),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Broken {
        Broken::Other(error)
    }
}

impl From<Failure> for Broken {
    fn from(failure: Failure) -> Broken {
        Broken::Device(failure)
    }
}

impl Broken {
    fn failure(self, other: &str) -> Failure {
        match self {
            Broken::Device(failure) => failure,
            Broken::Other(error) => {
                Failure::with(Status::Failed)(anyhow::Error::from(error).context(other.to_string()))
            }
        }
    }
}

fn read_to(
    disk: &Disk,
    memory: &Mapping,
    device: &Path,
    range: (u64, u64),
    to: &mut dyn Write,
    stop: &Interrupt,
) -> Result<(), Broken> {
    let mut chunk = vec![0; CHUNK];
    in_chunks(range, device, stop, |place, length| {
        disk.read(place, memory, length).map_err(|error| super::at(device, place, error))?;
        memory.copy_out(0, &mut chunk[..length]);
        Ok(to.write_all(&chunk[..length])?)
    })
}

pub fn write(arguments: &WriteArguments) -> Result<Status, Failure> {
    let WriteArguments { device, file, offset, destroy_data } = arguments;
    let (mut from, bytes) = open_source(file).map_err(Failure::with(Status::Usage))?;
    let mut disk = super::open(device, true)?;
    super::check_range(&disk, device, (*offset, bytes), true)
        .with_context(|| file.display().to_string())
        .map_err(Failure::with(Status::Usage))?;
    let _claim = super::allow_writes(&disk, device, destroy_data.as_deref())?;
    let (stop, memory) = (super::stop()?, memory_for(&mut disk)?);
    let mut chunk = vec![0; CHUNK];
    in_chunks((*offset, bytes), device, &stop, |place, length| {
        from.read_exact(&mut chunk[..length])?;
        memory.copy_in(0, &chunk[..length]);
        Ok(disk.write(place, &memory, length).map_err(|error| super::at(device, place, error))?)
    })
    .map_err(|broken| broken.failure(&file.display().to_string()))?;
    disk.flush().map_err(|error| super::at(device, offset + bytes, error))?;
    Ok(Status::Done)
}

fn open_source(path: &Path) -> anyhow::Result<(File, u64)> {
    let named = || path.display().to_string();
    // Before it is opened, because a pipe would wait for its writer.
    let meta = fs::metadata(path).with_context(named)?;
    ensure!(meta.is_file(), "{}: must be a regular file, whose length is known", path.display());
    let file = File::open(path).with_context(named)?;
    let bytes = file.metadata().with_context(named)?.len();
    Ok((file, bytes))
}

fn memory_for(disk: &mut Disk) -> Result<Arc<Mapping>, Failure> {
    let memory = Mapping::anonymous(CHUNK).map_err(Failure::with(Status::Failed))?;
    let memory = Arc::new(memory);
    disk.fix(&memory);
    Ok(memory)
}

/// Calls a function for each chunk, with its place and length.
fn in_chunks(
    (offset, bytes): (u64, u64),
    device: &Path,
    stop: &Interrupt,
    mut call: impl FnMut(u64, usize) -> Result<(), Broken>,
) -> Result<(), Broken> {
    let (begun, mut pace) = (Instant::now(), Pace::new());
    let mut done = 0;
    while done < bytes {
        if stop.requested() {
            let text = format!("{} of {bytes} bytes were copied", done);
            let interrupted = super::at(device, offset + done, io::ErrorKind::Interrupted.into());
            return Err(Failure { source: interrupted.source.context(text), ..interrupted }.into());
        }
        let length = (bytes - done).min(CHUNK as u64) as usize;
        call(offset + done, length)?;
        done += length as u64;
        if pace.is_due(begun.elapsed()) {
            diagnostic!("steady: {} of {} MiB", done >> 20, bytes >> 20);
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    let mib_s = bytes as f64 / f64::from(1 << 20) / seconds.max(1e-9);
    diagnostic!("steady: {bytes} bytes in {seconds:.3} s, {mib_s:.1} MiB/s");
    Ok(())
}
