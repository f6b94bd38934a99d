// SPDX-License-Identifier: MIT OR Apache-2.0
//! The thread of the writer. It is prepared before any segment is made, so that a forbidden
//! priority is reported at once and leaves nothing behind. [`super::Recorder::start`] calls it.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use steadyio_core::scheduling::set_fifo;

use super::meters::WriterReport;
use super::writer::Writer;
use crate::config::{IoPriority, WriterConfig};
use crate::task::{not_started, set_cpu, set_io_priority};

/// A thread with the configured settings, which waits for its writer or runs it.
#[derive(Debug)]
pub struct WriterThread {
    writers: Sender<Writer>,
    handle: JoinHandle<io::Result<WriterReport>>,
}

impl WriterThread {
    /// Starts the thread; the error names the setting that failed. Dropping it before a writer
    /// begins ends the thread.
    pub fn prepare(wanted: WriterConfig) -> io::Result<WriterThread> {
        let (writers, given) = channel();
        let (ready, prepared) = channel();
        let handle = Builder::new().name("steady-writer".into()).spawn(move || {
            // The starting thread waits for this.
            let _ = ready.send(prepare(&wanted));
            run(&given)
        });
        let handle = handle.map_err(not_started("the writer thread"))?;
        prepared.recv().map_err(|_| panicked())??;
        Ok(WriterThread { writers, handle })
    }

    /// Starts the writer in the thread.
    pub fn begin(self, writer: Writer) -> io::Result<WriterThread> {
        self.writers.send(writer).map_err(|_| panicked())?;
        Ok(self)
    }

    /// Wakes the thread and waits for its end. The caller must have asked it to stop.
    pub fn end(self) -> io::Result<WriterReport> {
        self.handle.thread().unpark();
        self.handle.join().map_err(|_| panicked())?
    }
}

fn run(given: &Receiver<Writer>) -> io::Result<WriterReport> {
    let writer = given.recv().map_err(|_| io::Error::other("the recording did not start"))?;
    Ok(writer.run())
}

fn panicked() -> io::Error {
    io::Error::other("the writer thread panicked")
}

/// Applies the configured settings to the calling thread.
fn prepare(config: &WriterConfig) -> io::Result<()> {
    let named = |wanted: String| {
        move |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot run the writer thread {wanted}: {error}"))
        }
    };
    if let Some(cpu) = config.cpu {
        set_cpu(cpu).map_err(named(format!("on CPU {cpu}")))?;
    }
    if let Some(priority) = config.io_priority {
        let IoPriority { class, level } = priority;
        let wanted = format!("at I/O priority {class}:{level} (class 1 needs root)");
        set_io_priority(priority).map_err(named(wanted))?;
    }
    if let Some(priority) = config.fifo_priority {
        let wanted = format!(
            "under SCHED_FIFO at priority {priority} (needs root, or ulimit -r {priority})"
        );
        set_fifo(priority).map_err(named(wanted))?;
    }
    Ok(())
}
