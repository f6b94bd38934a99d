// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ext4 recording paper's recorders: the caller's own thread calls write() into the page cache.
//! `session` runs them.
//!
//! Files hold only the records, as in the paper: the path of write() is measured, and a format
//! would add the same to each recipe. Threads: the caller (write), [`super::sync_thread`] (write
//! back, and finish each file), [`super::background`] (background load). When a file is full, the
//! caller waits until it is finished and the next one exists, which is the paper's "foreground".

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use steadyio_core::latency::Latencies;
use steadyio_recorder::ledger::{Amount, Ledger};
use steadyio_recorder::source::{Record, now_ns};

use super::background::{Plan, allocate};
use super::sync_thread::{Piece, SyncReport, SyncThread};
use crate::recording::caller::Sink;
use crate::recording::place::named;
use crate::recording::recipe::{Blocks, CallerWrites};

/// The places and sizes of the files.
#[derive(Debug, Clone)]
pub struct Files {
    /// The directory of the recording.
    pub dir: PathBuf,
    /// The largest size of a file.
    pub file_bytes: u64,
    /// The size of the recording.
    pub total_bytes: u64,
    /// The number of bytes per write-back.
    pub sync_bytes: u64,
}

impl Files {
    fn path(&self, number: u64) -> PathBuf {
        self.dir.join(format!("recording-{number:04}.raw"))
    }
}

/// Writes records to files.
#[derive(Debug)]
pub struct WriteSink {
    recipe: CallerWrites,
    files: Files,
    ledger: Arc<Ledger>,
    sync: SyncThread,
    file: Arc<File>,
    file_number: u64,
    position: u64,
    left_bytes: u64,
    unsynced: Piece,
    changes: Latencies,
}

/// The results of the other threads.
#[derive(Debug, Clone)]
pub struct WriteReport {
    pub sync: SyncReport,
    /// The times from the end of a file to the beginning of the next, in which the caller waited.
    pub changes: Latencies,
    /// The number of files written.
    pub files: u64,
}

impl WriteSink {
    /// Makes the first file and starts the second thread.
    pub fn start(recipe: CallerWrites, files: Files) -> io::Result<WriteSink> {
        let ledger = Arc::new(Ledger::default());
        let sync = SyncThread::start(recipe.sync, recipe.blocks, Arc::clone(&ledger))?;
        let left_bytes = files.total_bytes;
        let file = open_next(&recipe, &files, 0, left_bytes)?;
        Ok(WriteSink {
            recipe,
            files,
            ledger,
            sync,
            file: Arc::new(file),
            file_number: 0,
            position: 0,
            left_bytes,
            unsynced: Piece::default(),
            changes: Latencies::default(),
        })
    }

    /// The ledger of the only channel.
    pub fn ledger(&self) -> Arc<Ledger> {
        Arc::clone(&self.ledger)
    }

    /// The background load, if the recipe has one.
    pub fn background(&self, period_ns: u64, record_bytes: u64) -> Plan {
        Plan {
            background: self.recipe.background,
            dir: self.files.dir.clone(),
            period_ns,
            record_bytes,
            file_bytes: self.files.file_bytes,
            total_bytes: self.files.total_bytes,
        }
    }

    /// Ends the last file and the thread.
    pub fn finish(mut self) -> io::Result<WriteReport> {
        let ended = self.end_file();
        let sync = self.sync.finish()?;
        ended?;
        Ok(WriteReport { sync, changes: self.changes, files: self.file_number + 1 })
    }

    fn end_file(&mut self) -> io::Result<()> {
        let piece = std::mem::take(&mut self.unsynced);
        self.sync.end(&self.file, piece, self.position)
    }

    fn change_file(&mut self) -> io::Result<()> {
        let start_ns = now_ns();
        self.end_file()?;
        self.file_number += 1;
        self.file =
            Arc::new(open_next(&self.recipe, &self.files, self.file_number, self.left_bytes)?);
        self.position = 0;
        self.changes.add(now_ns() - start_ns);
        Ok(())
    }
}

fn open_next(
    recipe: &CallerWrites,
    files: &Files,
    number: u64,
    left_bytes: u64,
) -> io::Result<File> {
    let path = files.path(number);
    let named = |error| named(&path, error);
    let file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(named)?;
    if recipe.blocks == Blocks::Preallocated {
        let bytes = files.file_bytes.min(left_bytes).max(1);
        // A partly preallocated file is useless.
        allocate(&file, bytes).inspect_err(|_| drop(fs::remove_file(&path))).map_err(named)?;
    }
    Ok(file)
}

impl Sink for WriteSink {
    fn take(&mut self, record: &Record<'_>) -> io::Result<()> {
        (&*self.file)
            .write_all(record.data)
            .map_err(|error| named(&self.files.path(self.file_number), error))?;
        let bytes = record.data.len() as u64;
        let amount = Amount { records: 1, bytes };
        self.ledger.received(record.log_time_ns, bytes);
        self.ledger.written(amount);
        self.position += bytes;
        self.left_bytes = self.left_bytes.saturating_sub(bytes);
        self.unsynced.bytes += bytes;
        self.unsynced.amount = self.unsynced.amount.plus(amount);
        self.unsynced.last_ns = record.log_time_ns;
        Ok(())
    }

    fn settle(&mut self) -> io::Result<()> {
        if self.unsynced.bytes >= self.files.sync_bytes {
            let piece = std::mem::take(&mut self.unsynced);
            self.unsynced.offset = piece.offset + piece.bytes;
            self.sync.sync(&self.file, piece)?;
        }
        if self.position >= self.files.file_bytes && self.left_bytes > 0 {
            self.change_file()?;
        }
        Ok(())
    }
}
