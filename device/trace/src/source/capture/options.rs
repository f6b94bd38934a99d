// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options of a capture.

use std::path::PathBuf;
use std::time::Duration;

use crate::event::{Class, Dev};
use crate::source::table::Detail;

/// The selection to trace, and the limits of its cost.
#[derive(Clone, Debug)]
pub struct Options {
    /// Trace block events of these devices and of those below only; empty for all devices. Other
    /// events do not name a device.
    pub devices: Vec<Dev>,
    /// The level of detail.
    pub detail: Detail,
    /// Whether to trace `sched_switch` and `sched_waking` of all threads. Any thread can run on the
    /// CPU that another waits for.
    pub sched: bool,
    /// Whether to trace calls about names and attributes of files.
    pub metadata: bool,
    /// Trace the activity of these threads only, of the threads that they start, and of the program
    /// that [`super::Capture::spawn`] starts. The kernel drops events of other threads. `None`: all
    /// threads.
    pub threads: Option<Vec<u32>>,
    /// The kernel's buffer per CPU, in KiB. It must hold the events of one [`Options::period`], or
    /// of a longer time if other programs delay the reading thread.
    pub buffer_kib: u32,
    /// The interval at which the reading thread reads the buffers.
    pub period: Duration,
    /// The memory limit of the capture, in bytes.
    pub memory_bytes_max: u64,
    /// Whether to discard the oldest half when memory is full, and not to end.
    pub ring: bool,
    /// End when an I/O fires the trigger, and keep the events before it, as a ring does.
    pub trigger: Option<Trigger>,
    /// The length of the intervals of [`super::Reader::intervals`].
    pub interval: Option<Duration>,
    /// The folder to keep the capture in; it also continues there when memory is full. Without a
    /// folder, tracing then ends.
    pub keep: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            devices: Vec::new(),
            detail: Detail::Summary,
            sched: false,
            metadata: false,
            threads: None,
            buffer_kib: 8 << 10,
            period: Duration::from_millis(25),
            memory_bytes_max: 256 << 20,
            ring: false,
            trigger: None,
            interval: None,
            keep: None,
        }
    }
}

/// The condition that ends the tracing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// An I/O takes longer than this. With a class, only requests of this class count; the class of
    /// a call is unknown.
    Above(Duration, Option<Class>),
    /// k2 reports a late real-time request.
    Late,
}
