// SPDX-License-Identifier: MIT OR Apache-2.0
//! The time of discards.

use std::io;
use std::os::fd::AsRawFd;
use std::time::Instant;

use steadyio_core::interrupt::Interrupt;

use crate::line::Line;
use crate::place::{Place, ProbeError};
use crate::samples::median;

const SIZES_MIB: [u64; 3] = [1, 4, 16];
const REPEATS: u64 = 5;

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
            discard(place, number * bytes % (place.size_bytes - bytes), bytes)
                .map_err(|error| ProbeError::Io(format!("discard of {bytes} bytes"), error))?;
            took_ns.push(begun.elapsed().as_nanos() as f64);
        }
        points.push(((bytes >> 10) as f64, median(took_ns)));
    }
    Ok(Line::through(&points))
}

fn discard(place: &Place, offset: u64, bytes: u64) -> io::Result<()> {
    /// linux/fs.h: _IO(0x12, 119).
    const BLKDISCARD: libc::c_ulong = 0x1277;
    let range = [offset, bytes];
    // SAFETY: the kernel reads two numbers from the array.
    let done = unsafe { libc::ioctl(place.file().as_raw_fd(), BLKDISCARD as _, range.as_ptr()) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
