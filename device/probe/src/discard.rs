// SPDX-License-Identifier: MIT OR Apache-2.0
//! Discards, and their times.

use std::io;
use std::os::fd::AsRawFd;
use std::time::Instant;

use steadyio_core::interrupt::Interrupt;

use crate::line::Line;
use crate::place::{Place, ProbeError};
use crate::samples::median;

const SIZES_MIB: [u64; 3] = [1, 4, 16];
const REPEATS: u64 = 5;
const PART_BYTES: u64 = 64 << 20;

/// Discards parts of a block device, `limit_bytes` each at most. None: it takes none.
pub fn line(place: &Place, limit_bytes: u64, stop: &Interrupt) -> Result<Option<Line>, ProbeError> {
    let mut points = Vec::new();
    for bytes in SIZES_MIB.map(|mib| mib << 20).into_iter().filter(|bytes| *bytes <= limit_bytes) {
        let mut took_ns = Vec::new();
        for number in 0..REPEATS {
            if stop.requested() {
                return Err(ProbeError::Interrupted);
            }
            let begun = Instant::now();
            discard(place, number * bytes % (place.size_bytes - bytes), bytes)?;
            took_ns.push(begun.elapsed().as_nanos() as f64);
        }
        points.push(((bytes >> 10) as f64, median(took_ns)));
    }
    Ok(Line::through(&points))
}

/// Discards from one offset up to another, in parts, so that a signal can stop it.
pub fn all(place: &Place, from: u64, to: u64, stop: &Interrupt) -> Result<(), ProbeError> {
    let mut offset = from;
    while offset < to {
        if stop.requested() {
            return Err(ProbeError::Interrupted);
        }
        let bytes = PART_BYTES.min(to - offset);
        discard(place, offset, bytes)?;
        offset += bytes;
    }
    Ok(())
}

/// [`crate::deleting`] calls it, too.
pub fn discard(place: &Place, offset: u64, bytes: u64) -> Result<(), ProbeError> {
    /// linux/fs.h: _IO(0x12, 119).
    const BLKDISCARD: libc::c_ulong = 0x1277;
    let range = [offset, bytes];
    // SAFETY: the kernel reads two numbers from the array.
    let done = unsafe { libc::ioctl(place.file().as_raw_fd(), BLKDISCARD as _, range.as_ptr()) };
    if done == 0 {
        return Ok(());
    }
    let what = format!("discard of {bytes} bytes at {offset}");
    Err(ProbeError::Io(what, io::Error::last_os_error()))
}
