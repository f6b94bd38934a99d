// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the metrics as a file for the node exporter's textfile collector. `steady watch` uses it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use steadyio_core::diagnostic;
use steadyio_watch::metrics::openmetrics;
use steadyio_watch::watch::Snapshot;

use crate::record_file::RecordFile;

/// The file. It is removed when the watch ends, because old figures mislead.
pub struct TextFile {
    path: PathBuf,
    failed: Option<io::ErrorKind>,
}

impl TextFile {
    /// Checks that the file can be written.
    pub fn open(path: &Path) -> anyhow::Result<TextFile> {
        if path.extension().is_none_or(|extension| extension != "prom") {
            bail!(
                "{}: the name must end in .prom: the node exporter reads no other",
                path.display()
            );
        }
        RecordFile::check(path).with_context(|| path.display().to_string())?;
        Ok(TextFile { path: path.into(), failed: None })
    }

    /// Writes the file. It reports a failure once, and tries again at the next interval.
    pub fn replace(&mut self, snapshot: &Arc<Snapshot>) {
        let text = openmetrics(snapshot.clone());
        let result = RecordFile::create(&self.path).and_then(|file| file.show(&text));
        let failed = result.as_ref().err().map(io::Error::kind);
        match result {
            Err(error) if failed != self.failed => {
                let path = self.path.display();
                diagnostic!("steady: --openmetrics {path}: {error}; it is tried again");
            }
            _ => {}
        }
        self.failed = failed;
    }
}

impl Drop for TextFile {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|found| found.is_file()) {
            let _ = fs::remove_file(&self.path);
        }
    }
}
