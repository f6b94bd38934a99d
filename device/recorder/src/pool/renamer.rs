// SPDX-License-Identifier: MIT OR Apache-2.0
//! Renames segments in a separate thread, because the writer thread must not wait for the journal
//! of a file system.
//!
//! While a recording runs, only a segment that was never used gets another name, so the thread has
//! nothing to do once all have been used. Nothing depends on the time of a rename or its success:
//! see [`crate::mcap::names`].

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use super::meters::Meters;
use crate::mcap::names::rename;
use crate::task::not_started;

type Names = (PathBuf, PathBuf);

/// The thread that renames. After this is dropped, it still handles the names it has received.
#[derive(Debug)]
pub struct Renamer {
    names: Sender<Names>,
    thread: JoinHandle<()>,
}

impl Renamer {
    /// Starts the thread. It reports errors to `meters`.
    pub fn start(meters: Arc<Meters>) -> io::Result<Renamer> {
        let (names, given) = channel();
        let thread = Builder::new().name("steady-renamer".into());
        let thread = thread.spawn(move || rename_all(&given, &meters));
        let thread = thread.map_err(not_started("the thread that renames segments"))?;
        Ok(Renamer { names, thread })
    }

    /// Renames a segment from the first name to the second, soon.
    pub fn rename(&self, names: Names) {
        // The thread receives until this is dropped.
        let _ = self.names.send(names);
    }

    /// Waits until all segments are renamed.
    pub fn finish(self) {
        drop(self.names);
        let _ = self.thread.join();
    }
}

fn rename_all(given: &Receiver<Names>, meters: &Meters) {
    for (from, to) in given {
        if let Err(error) = rename(&from, &to) {
            meters.set_trouble(format!("renaming {}: {error}", from.display()));
        }
    }
}
