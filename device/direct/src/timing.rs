// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures single reads and writes of one size, one after the other, at random places. `steady
//! direct bench` calls it.
//!
//! It uses two ways: memory that the kernel pins for each call (`pread`, `pwrite`), and memory that
//! is pinned once (registered with the character device, or with an io_uring).

use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Instant;

use io_uring::types::Fd;
use io_uring::{IoUring, opcode};
use steadyio_core::histogram::Histogram;
use steadyio_core::interrupt::Interrupt;
use steadyio_core::latency::Latencies;
use steadyio_core::random::{below, draw};

use crate::chardisk::Registered;
use crate::disk::{Disk, DiskKind};
use crate::mapping::Mapping;
use crate::ring::submit;

/// The measured load.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    pub writes: bool,
    pub bytes: usize,
    /// The range on the device: this offset and length.
    pub start: u64,
    pub range_bytes: u64,
    pub count: u64,
    /// The seed of the places.
    pub seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// `pread` and `pwrite`.
    Plain,
    /// The memory is pinned once.
    Registered,
}

impl Way {
    pub fn word(self, disk: &Disk) -> &'static str {
        match (self, &disk.kind) {
            (Way::Plain, DiskKind::Block(_)) => "O_DIRECT",
            (Way::Plain, DiskKind::Char(_)) => "character device",
            (Way::Plain, DiskKind::Nvme(_)) => "NVMe commands by io_uring",
            (Way::Registered, DiskKind::Nvme(_)) => "NVMe commands by io_uring, fixed buffer",
            (Way::Registered, DiskKind::Block(_)) => "io_uring, fixed buffer",
            (Way::Registered, DiskKind::Char(_)) => "character device, registered buffer",
        }
    }
}

/// Measures latencies in ns, and calls `tick` after each call. ErrorKind::Interrupted: stopped.
pub fn measure(
    disk: &Disk,
    way: Way,
    load: &Load,
    stop: &Interrupt,
    tick: &mut dyn FnMut(u64),
) -> io::Result<Histogram> {
    let memory = Arc::new(Mapping::anonymous(load.bytes)?);
    match (way, &disk.kind) {
        (Way::Plain, _) => run(load, stop, tick, |offset| match load.writes {
            true => disk.write(offset, &memory, load.bytes),
            false => disk.read(offset, &memory, load.bytes),
        }),
        (Way::Registered, DiskKind::Char(_)) => {
            let registered = Registered::new(&disk.file, &memory)?;
            run(load, stop, tick, |offset| {
                registered.transfer(load.writes, offset, load.bytes).map(drop)
            })
        }
        (Way::Registered, DiskKind::Nvme(queue)) => {
            let fixed = queue.with_fixed(&disk.file, &memory)?;
            run(load, stop, tick, |offset| fixed.transfer(load.writes, offset, &memory, load.bytes))
        }
        (Way::Registered, DiskKind::Block(_)) => {
            let mut ring = ring_with(&memory)?;
            run(load, stop, tick, |offset| fixed(&mut ring, disk, load, offset, &memory))
        }
    }
}

fn run(
    load: &Load,
    stop: &Interrupt,
    tick: &mut dyn FnMut(u64),
    mut call: impl FnMut(u64) -> io::Result<()>,
) -> io::Result<Histogram> {
    let places = (load.range_bytes / load.bytes as u64).max(1);
    let mut latencies = Latencies::default();
    for number in 0..load.count {
        if stop.requested() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let offset = load.start + below(draw(load.seed, number), places) * load.bytes as u64;
        let begun = Instant::now();
        call(offset)?;
        latencies.add(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
        tick(number + 1);
    }
    Ok(latencies.histogram())
}

/// An io_uring with all of the memory registered. `buffer` calls it, too.
pub fn ring_with(memory: &Mapping) -> io::Result<IoUring> {
    let ring = IoUring::new(1)?;
    let whole = libc::iovec { iov_base: memory.as_ptr().cast(), iov_len: memory.bytes() };
    // SAFETY: the caller drops the ring before the memory.
    unsafe { ring.submitter().register_buffers(&[whole]) }?;
    Ok(ring)
}

fn fixed(
    ring: &mut IoUring,
    disk: &Disk,
    load: &Load,
    offset: u64,
    memory: &Mapping,
) -> io::Result<()> {
    let (fd, bytes) = (Fd(disk.file.as_raw_fd()), load.bytes as u32);
    let entry = match load.writes {
        true => opcode::WriteFixed::new(fd, memory.as_ptr(), bytes, 0).offset(offset).build(),
        false => opcode::ReadFixed::new(fd, memory.as_ptr(), bytes, 0).offset(offset).build(),
    };
    match complete(ring, entry)? {
        moved if moved == bytes => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Submits one entry and waits for it.
pub fn complete(ring: &mut IoUring, entry: io_uring::squeue::Entry) -> io::Result<u32> {
    // SAFETY: file and memory of the entry live until its completion, for which this waits.
    unsafe { ring.submission().push(&entry) }.map_err(io::Error::other)?;
    loop {
        submit(ring)?;
        if let Some(done) = ring.completion().next() {
            let result = done.result();
            return u32::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result));
        }
    }
}
