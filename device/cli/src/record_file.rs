// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file for a record: replaced when complete, otherwise unchanged.

use std::fs::{File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use tempfile::NamedTempFile;

#[derive(Debug)]
pub struct RecordFile {
    path: PathBuf,
    temporary: NamedTempFile,
}

/// The folder of a file, if files can be made there. Errors of making one name the temporary file,
/// which nobody asked for.
pub fn writable_folder(path: &Path) -> io::Result<&Path> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    access(folder, Access::WRITE_OK | Access::EXEC_OK)?;
    Ok(folder)
}

impl RecordFile {
    /// Checks that `path` can be written; to be called before the measurement.
    pub fn create(path: &Path) -> io::Result<RecordFile> {
        let dir = writable_folder(path)?;
        // Found by the rename otherwise, after the measurement.
        if path.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let temporary = tempfile::Builder::new().prefix(".steady-").tempfile_in(dir)?;
        Ok(RecordFile { path: path.to_path_buf(), temporary })
    }

    /// Writes the record, as JSON, and gives the file its name.
    pub fn finish(self, json: &str) -> io::Result<()> {
        self.fill(|out| out.write_all(json.as_bytes()))
    }

    /// The same with what `write` writes, in pieces of any size; returns what that returns.
    pub fn fill<T, E: From<io::Error>>(
        mut self,
        write: impl FnOnce(&mut BufWriter<&mut File>) -> Result<T, E>,
    ) -> Result<T, E> {
        // Errors of the temporary file itself would name it, which nobody asked for.
        let mut out = BufWriter::new(self.temporary.as_file_mut());
        let written = write(&mut out)?;
        out.flush()?;
        drop(out);
        self.temporary.as_file().sync_all()?;
        self.temporary.as_file().set_permissions(Permissions::from_mode(0o644))?;
        self.temporary.persist(&self.path).map_err(|error| error.error)?;
        Ok(written)
    }
}
