// SPDX-License-Identifier: MIT OR Apache-2.0
//! Background readers in the same process, next to calls that are measured. `steady direct bench`
//! uses them to show the order of levels.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use steadyio_core::random::{below, draw};
use steadyio_core::scheduling::{IO_CLASS_IDLE, set_io_priority};

use crate::disk::{Disk, DiskError};
use crate::mapping::Mapping;
use crate::nvme::order::{Level, Order};

/// The reads of each background thread.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    pub bytes: usize,
    /// The range on the device: this offset and length.
    pub start: u64,
    pub range_bytes: u64,
    pub seed: u64,
}

/// Threads of the idle class that read at random places.
#[derive(Debug)]
pub struct Background {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<io::Result<u64>>>,
    begun: Instant,
}

impl Background {
    /// Starts this many readers. For NVMe they are the background of the order.
    pub fn start(
        device: &Path,
        readers: u64,
        reading: Reading,
        order: &Arc<Order>,
    ) -> Result<Background, DiskError> {
        let stop = Arc::new(AtomicBool::new(false));
        let open = |_| Disk::open(device, false);
        let disks: Vec<Disk> = (0..readers).map(open).collect::<Result<_, _>>()?;
        let begun = Instant::now();
        let threads = disks.into_iter().zip(1..).map(|(mut disk, number)| {
            disk.set_order(order, Level::Background);
            let stop = stop.clone();
            let seed = reading.seed.wrapping_add(number);
            thread::spawn(move || read_until(&stop, &disk, Reading { seed, ..reading }))
        });
        let threads = threads.collect();
        Ok(Background { stop, threads, begun })
    }

    /// Stops them, and returns what they read in MiB/s.
    pub fn finish(mut self) -> io::Result<f64> {
        self.stop.store(true, Ordering::Relaxed);
        let seconds = self.begun.elapsed().as_secs_f64();
        let mut bytes = 0;
        for thread in self.threads.drain(..) {
            let done = thread.join().unwrap_or_else(|_| Err(io::Error::other("a reader panicked")));
            bytes += done?;
        }
        Ok(bytes as f64 / f64::from(1 << 20) / seconds.max(1e-9))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Returns the number of bytes that it read.
fn read_until(stop: &AtomicBool, disk: &Disk, reading: Reading) -> io::Result<u64> {
    set_io_priority(IO_CLASS_IDLE, 0)?;
    let memory = Mapping::anonymous(reading.bytes)?;
    let places = (reading.range_bytes / reading.bytes as u64).max(1);
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        let place = below(draw(reading.seed, number), places);
        disk.read(reading.start + place * reading.bytes as u64, &memory, reading.bytes)?;
        number += 1;
    }
    Ok(number * reading.bytes as u64)
}
