// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output file of a record. All commands with an output file use it.
//!
//! A regular file is replaced when the record is complete, and keeps its owner and mode; otherwise
//! it is unchanged. Another file, such as /dev/null or a FIFO, is written in place.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Access, OFlags, access, fcntl_setfl, major, minor};
use rustix::io::Errno;
use tempfile::NamedTempFile;

/// The time to wait for the reader of a FIFO, which is often started at the same time.
const READER_MAX: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The classes of character devices that hold data.
const CLASSES: [&str; 2] = ["chardisk", "nvme-generic"];

#[derive(Debug)]
pub enum RecordFile {
    Replaced { path: PathBuf, temporary: NamedTempFile },
    WrittenInto(File),
}

/// The destination of a record.
enum Place {
    Replaced { path: PathBuf, folder: PathBuf },
    WrittenInto,
}

impl Place {
    fn of(path: &Path) -> io::Result<Place> {
        let is_link = path.is_symlink();
        let path = match fs::metadata(path) {
            Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(_) if leads_through_proc(path) => return Ok(Place::WrittenInto),
            Ok(found) if is_storage(&found) => {
                let text = "is a storage device, whose contents would be lost: name a file";
                return Err(io::Error::other(text));
            }
            Ok(found) if !found.is_file() => return Ok(Place::WrittenInto),
            Ok(_) if is_link => path.canonicalize()?,
            Err(error) if error.kind() == io::ErrorKind::NotFound && is_link => {
                return Err(io::Error::other("is a link to a file that does not exist"));
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => path.to_path_buf(),
        };
        let folder = folder_of(&path);
        // An error of making the file would name the temporary file, which the user does not know.
        access(&folder, Access::WRITE_OK | Access::EXEC_OK)?;
        Ok(Place::Replaced { path, folder })
    }
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// Whether both paths name the same file, which need not exist yet. A device such as /dev/null
/// counts as different, because it accepts several writers.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    let place =
        |path: &Path| Some((folder_of(path).canonicalize().ok()?, path.file_name()?.to_owned()));
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(one), Ok(other)) => {
            let number = |file: &Metadata| (file.dev(), file.ino());
            !one.file_type().is_char_device() && number(&one) == number(&other)
        }
        (Err(_), Err(_)) => place(one).is_some_and(|one| Some(one) == place(other)),
        _ => false,
    }
}

/// Whether it is a block device, or a character device that holds data.
fn is_storage(file: &Metadata) -> bool {
    let (kind, number) = (file.file_type(), file.rdev());
    let link = format!("/sys/dev/char/{}:{}/subsystem", major(number), minor(number));
    let is_class = |class: PathBuf| {
        CLASSES.iter().any(|name| class.file_name().is_some_and(|own| own == *name))
    };
    kind.is_block_device() || kind.is_char_device() && fs::read_link(link).is_ok_and(is_class)
}

/// Whether the path is an open file of a process, such as /dev/stdout. A file that a shell opened
/// must not be replaced.
fn leads_through_proc(path: &Path) -> bool {
    let mut path = path.to_path_buf();
    while let Ok(target) = fs::read_link(&path) {
        let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
        match folder {
            Some(folder) if folder.starts_with("/proc") => return true,
            folder => path = folder.unwrap_or_default().join(target),
        }
    }
    false
}

fn open(path: &Path) -> io::Result<File> {
    let began = Instant::now();
    let nonblock = OFlags::NONBLOCK.bits() as i32;
    loop {
        // With O_NONBLOCK, because Ctrl-C would not end the open of a FIFO without a reader.
        let opened = OpenOptions::new().append(true).custom_flags(nonblock).open(path);
        let Err(error) = opened else { break opened };
        let is_fifo = || fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo());
        if error.raw_os_error() != Some(Errno::NXIO.raw_os_error()) || !is_fifo() {
            return Err(error);
        }
        if began.elapsed() > READER_MAX {
            return Err(io::Error::other(
                "is a FIFO that no program reads: start the reader first",
            ));
        }
        thread::sleep(LOOK_EVERY);
    }
    .and_then(|file| {
        fcntl_setfl(&file, OFlags::APPEND)?;
        Ok(file)
    })
}

impl RecordFile {
    /// Checks that `path` can be written. Call it before the measurement.
    pub fn create(path: &Path) -> io::Result<RecordFile> {
        match Place::of(path)? {
            Place::WrittenInto => Ok(RecordFile::WrittenInto(open(path)?)),
            Place::Replaced { path, folder } => {
                let temporary = tempfile::Builder::new().prefix(".steady-").tempfile_in(folder)?;
                Ok(RecordFile::Replaced { path, temporary })
            }
        }
    }

    /// Makes the same check, without opening or making anything.
    pub fn check(path: &Path) -> io::Result<()> {
        Place::of(path).map(|_| ())
    }

    /// Writes the record, as JSON, and gives the file its name.
    pub fn finish(self, json: &str) -> io::Result<()> {
        self.fill(|out| out.write_all(json.as_bytes()))
    }

    /// Like [`RecordFile::finish`], but `write` writes the contents in pieces of any size. Returns
    /// its result.
    pub fn fill<T, E: From<io::Error>>(
        self,
        write: impl FnOnce(&mut BufWriter<&mut File>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.fill_and(File::sync_all, write)
    }

    /// Like [`RecordFile::fill`]. The file is complete for every reader, but not durable.
    pub fn fill_unsynced<T, E: From<io::Error>>(
        self,
        write: impl FnOnce(&mut BufWriter<&mut File>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.fill_and(|_| Ok(()), write)
    }

    fn fill_and<T, E: From<io::Error>>(
        self,
        finish: impl FnOnce(&File) -> io::Result<()>,
        write: impl FnOnce(&mut BufWriter<&mut File>) -> Result<T, E>,
    ) -> Result<T, E> {
        match self {
            RecordFile::WrittenInto(mut file) => write_all(&mut file, write),
            RecordFile::Replaced { path, mut temporary } => {
                let written = write_all(temporary.as_file_mut(), write)?;
                finish(temporary.as_file())?;
                give_name(temporary, &path)?;
                Ok(written)
            }
        }
    }

    /// Writes a text that changes often. It is complete for every reader, but not durable, so that
    /// no device is flushed for it.
    pub fn show(self, text: &str) -> io::Result<()> {
        match self {
            RecordFile::WrittenInto(mut file) => file.write_all(text.as_bytes()),
            RecordFile::Replaced { path, mut temporary } => {
                temporary.write_all(text.as_bytes())?;
                give_name(temporary, &path)
            }
        }
    }
}

fn give_name(temporary: NamedTempFile, path: &Path) -> io::Result<()> {
    let before = fs::metadata(path).ok();
    let mode = before.as_ref().map_or(0o644, |file| file.mode() & 0o7777);
    if let Some(before) = before {
        // Only root may change the owner; others may change to one of their groups.
        let file = temporary.as_file();
        let _ = fchown(file, Some(before.uid()), Some(before.gid()))
            .or_else(|_| fchown(file, None, Some(before.gid())));
    }
    match temporary.as_file().set_permissions(Permissions::from_mode(mode)) {
        // A file system without permissions, such as FAT. The contents are written all the same.
        Err(error) if has_no_permissions(&error) => {}
        set => set?,
    }
    // An error of the temporary file would name it.
    temporary.persist(path).map_err(|error| error.error)?;
    Ok(())
}

fn has_no_permissions(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL))
}

fn write_all<T, E: From<io::Error>>(
    file: &mut File,
    write: impl FnOnce(&mut BufWriter<&mut File>) -> Result<T, E>,
) -> Result<T, E> {
    let mut out = BufWriter::new(file);
    let written = write(&mut out)?;
    out.flush()?;
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_without_permissions_is_no_reason_to_fail() {
        for (errno, ignored) in [
            (Errno::PERM, true),
            (Errno::OPNOTSUPP, true),
            (Errno::IO, false),
            (Errno::ROFS, false),
        ] {
            assert_eq!(has_no_permissions(&errno.into()), ignored, "{errno:?}");
        }
    }
}
