// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ext4 recording paper's second thread: writes back the caller's data, unit by unit, and
//! finishes each file. `caller_writes` starts it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use steadyio_core::latency::Latencies;
use steadyio_recorder::ledger::{Amount, Ledger};
use steadyio_recorder::read_only::refuse_read_only;
use steadyio_recorder::source::now_ns;
use steadyio_recorder::task::{Counters, Probe};

use crate::recording::recipe::{Blocks, Sync};

/// The number of pieces that may be queued before the caller blocks; more than fit into memory.
const QUEUE: usize = 1 << 16;

/// A piece of a file that the caller has written.
#[derive(Debug, Clone, Copy, Default)]
pub struct Piece {
    /// The beginning of the piece.
    pub offset: u64,
    pub bytes: u64,
    /// The number of records in it, or in all pieces since the last sync.
    pub amount: Amount,
    /// The time of the newest record in it.
    pub last_ns: u64,
}

enum Order {
    Sync(Arc<File>, Piece),
    /// The end of a file, with the last piece and the file's final length.
    End(Arc<File>, Piece, u64, SyncSender<()>),
}

/// The results of the thread.
#[derive(Debug, Clone, Default)]
pub struct SyncReport {
    /// The times of calls that wrote back a piece.
    pub syncs: Latencies,
    /// The times of ftruncate() and fsync() at the end of each file.
    pub ends: Latencies,
    pub kernel: Counters,
}

/// The thread, with the queue of its work.
#[derive(Debug)]
pub struct SyncThread {
    orders: SyncSender<Order>,
    thread: JoinHandle<io::Result<SyncReport>>,
}

impl SyncThread {
    /// Starts the thread. It counts durable records in the ledger.
    pub fn start(sync: Sync, blocks: Blocks, ledger: Arc<Ledger>) -> io::Result<SyncThread> {
        let (orders, inbox) = sync_channel(QUEUE);
        let work = Worker { sync, blocks, ledger, undurable: Amount::default() };
        let thread = thread::Builder::new().name("steady-sync".into());
        Ok(SyncThread { orders, thread: thread.spawn(move || work.run(&inbox))? })
    }

    /// Queues a piece for write-back.
    pub fn sync(&self, file: &Arc<File>, piece: Piece) -> io::Result<()> {
        self.orders.send(Order::Sync(Arc::clone(file), piece)).map_err(|_| gone())
    }

    /// Finishes a file of this length and waits for it.
    pub fn end(&self, file: &Arc<File>, piece: Piece, length: u64) -> io::Result<()> {
        let (done, wait) = sync_channel(1);
        self.orders.send(Order::End(Arc::clone(file), piece, length, done)).map_err(|_| gone())?;
        wait.recv().map_err(|_| gone())
    }

    /// Ends the thread.
    pub fn finish(self) -> io::Result<SyncReport> {
        drop(self.orders);
        self.thread.join().map_err(|_| io::Error::other("the sync thread panicked"))?
    }
}

/// The error after the thread has ended; [`SyncThread::finish`] returns the reason.
fn gone() -> io::Error {
    io::Error::other("the sync thread has ended")
}

struct Worker {
    sync: Sync,
    blocks: Blocks,
    ledger: Arc<Ledger>,
    undurable: Amount,
}

impl Worker {
    fn run(mut self, inbox: &Receiver<Order>) -> io::Result<SyncReport> {
        let probe = Probe::new();
        let mut report = SyncReport::default();
        while let Ok(order) = inbox.recv() {
            let start_ns = now_ns();
            match order {
                Order::Sync(file, piece) => {
                    self.undurable = self.undurable.plus(piece.amount);
                    self.sync_piece(&file, piece)?;
                    report.syncs.add(now_ns() - start_ns);
                }
                Order::End(file, piece, length, done) => {
                    self.undurable = self.undurable.plus(piece.amount);
                    if self.blocks == Blocks::Preallocated {
                        file.set_len(length)?;
                    }
                    file.sync_all()?;
                    self.durable(&file, piece.last_ns)?;
                    report.ends.add(now_ns() - start_ns);
                    // The caller may have ended.
                    let _ = done.send(());
                }
            }
        }
        report.kernel = probe.read();
        Ok(report)
    }

    fn sync_piece(&mut self, file: &File, piece: Piece) -> io::Result<()> {
        match self.sync {
            Sync::Fdatasync => {
                file.sync_data()?;
                self.durable(file, piece.last_ns)
            }
            // Not durable: neither the device's cache nor the metadata of these pages is written.
            // The fsync() at the end does that.
            Sync::SyncFileRange => sync_file_range(file, piece),
        }
    }

    fn durable(&mut self, file: &File, last_ns: u64) -> io::Result<()> {
        refuse_read_only(file)?;
        self.ledger.durable(std::mem::take(&mut self.undurable), last_ns);
        Ok(())
    }
}

/// Writes the pages of a piece and waits for them.
fn sync_file_range(file: &File, piece: Piece) -> io::Result<()> {
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    let offset = i64::try_from(piece.offset).map_err(io::Error::other)?;
    let bytes = i64::try_from(piece.bytes).map_err(io::Error::other)?;
    // SAFETY: numbers only; the file is open.
    match unsafe { libc::sync_file_range(file.as_raw_fd(), offset, bytes, flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
