// SPDX-License-Identifier: MIT OR Apache-2.0
//! Renames segments for the writer thread, which must not wait for the journal of a file system.
//!
//! Only a segment that was never recorded into gets another name while a recording runs, so once all
//! have been used this has nothing to do. Nothing depends on when a name changes, or on whether it
//! does: see [`crate::mcap::names`].

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use super::meters::Meters;
use super::thread::not_started;
use crate::mcap::names::rename;

type Names = (PathBuf, PathBuf);

/// The thread that renames. After this is dropped, it still handles the names it has received.
#[derive(Debug)]
pub struct Renamer {
    names: Sender<Names>,
    thread: JoinHandle<()>,
}

impl Renamer {
    /// Starts the thread, which reports errors to `meters`.
    pub fn start(meters: Arc<Meters>) -> io::Result<Renamer> {
        let (names, given) = channel();
        let thread = Builder::new().name("steady-renamer".into());
        let thread = thread.spawn(move || rename_all(&given, &meters));
        let thread = thread.map_err(not_started("the thread that renames segments"))?;
        Ok(Renamer { names, thread })
    }

    /// From the first name to the second, soon.
    pub fn rename(&self, names: Names) {
        // It receives until this is dropped.
        let _ = self.names.send(names);
    }

    /// Waits until all is renamed.
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
