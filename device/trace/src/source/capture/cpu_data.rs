// SPDX-License-Identifier: MIT OR Apache-2.0
//! The captured pages of one CPU, in unnamed files or in a folder. The reader appends them, and
//! [`super::Captured`] reads them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{MemfdFlags, memfd_create, sendfile};

/// The limit of one call.
const SEND_BYTES: usize = 1 << 30;

/// The data of one CPU's buffer so far.
#[derive(Debug)]
pub struct CpuData {
    pub cpu: u32,
    /// Whether the buffer has events of the requested threads only.
    pub of_threads: bool,
    /// In a ring, the pages before those in `file`.
    pub older: Option<File>,
    pub file: File,
    /// Whether `file` lies in the folder of the capture, with all pages.
    pub in_folder: bool,
}

pub fn in_memory() -> io::Result<File> {
    Ok(memfd_create("steady-trace", MemfdFlags::CLOEXEC)?.into())
}

impl CpuData {
    /// The name of its file in a folder.
    pub fn file_name(&self) -> String {
        let of_threads = if self.of_threads { "-threads" } else { "" };
        format!("cpu{}{of_threads}.raw", self.cpu)
    }

    pub fn bytes_with_older(&self) -> u64 {
        self.older.as_ref().map_or(0, bytes) + bytes(&self.file)
    }

    /// Appends a copy of all pages to a file, in order to continue there.
    pub fn copy_to(&self, to: File) -> io::Result<File> {
        for file in self.older.iter().chain([&self.file]) {
            let mut at = 0;
            while sendfile(&to, file, Some(&mut at), SEND_BYTES)? > 0 {}
        }
        Ok(to)
    }

    /// Continues in `copy`, the file in the folder that has a copy of all pages.
    pub fn go_on_in(&mut self, copy: File) {
        (self.older, self.file, self.in_folder) = (None, copy, true);
    }

    /// All pages, oldest first.
    pub fn pages(&self, size: usize) -> impl Iterator<Item = io::Result<Vec<u8>>> {
        let of_file =
            move |file| (0..).map_while(move |n| page_at(file, n * size as u64, size).transpose());
        self.older.iter().chain([&self.file]).flat_map(of_file)
    }
}

/// The page at `offset`, or the rest of the file if that is shorter; `None` at the end. Several
/// readers may read at the same time.
pub fn page_at(file: &File, offset: u64, size: usize) -> io::Result<Option<Vec<u8>>> {
    let mut page = vec![0; size];
    let bytes = file.read_at(&mut page, offset)?;
    page.truncate(bytes);
    Ok((bytes > 0).then_some(page))
}

pub fn bytes(file: &File) -> u64 {
    file.metadata().map_or(0, |metadata| metadata.len())
}
