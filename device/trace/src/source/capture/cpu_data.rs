// SPDX-License-Identifier: MIT OR Apache-2.0
//! The captured pages of one CPU, in files without a name or in a folder.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{MemfdFlags, memfd_create, sendfile};

/// At most, in one call.
const SEND_BYTES: usize = 1 << 30;

/// What one CPU's buffer has given so far.
#[derive(Debug)]
pub struct CpuData {
    pub cpu: u32,
    /// Of the buffer with events of the requested threads only.
    pub of_threads: bool,
    /// Of a ring: the pages before those in `file`.
    pub older: Option<File>,
    pub file: File,
    /// `file` is where the capture is kept, and has all.
    pub in_folder: bool,
}

pub fn in_memory() -> io::Result<File> {
    Ok(memfd_create("steady-trace", MemfdFlags::CLOEXEC)?.into())
}

impl CpuData {
    /// What its file is called in a folder.
    pub fn file_name(&self) -> String {
        let of_threads = if self.of_threads { "-threads" } else { "" };
        format!("cpu{}{of_threads}.raw", self.cpu)
    }

    pub fn bytes_with_older(&self) -> u64 {
        self.older.as_ref().map_or(0, bytes) + bytes(&self.file)
    }

    /// To go on there, behind what there is.
    pub fn copy_to(&self, to: File) -> io::Result<File> {
        for file in self.older.iter().chain([&self.file]) {
            let mut at = 0;
            while sendfile(&to, file, Some(&mut at), SEND_BYTES)? > 0 {}
        }
        Ok(to)
    }

    /// Goes on in the file of the folder that holds a copy.
    pub fn go_on_in(&mut self, copy: File) {
        (self.older, self.file, self.in_folder) = (None, copy, true);
    }

    /// Its pages, from the first.
    pub fn pages(&self, size: usize) -> impl Iterator<Item = io::Result<Vec<u8>>> {
        let of_file =
            move |file| (0..).map_while(move |n| page_at(file, n * size as u64, size).transpose());
        self.older.iter().chain([&self.file]).flat_map(of_file)
    }
}

/// The page there, or what is left if that is less; `None` at the end. Several readers do not disturb each other.
pub fn page_at(file: &File, offset: u64, size: usize) -> io::Result<Option<Vec<u8>>> {
    let mut page = vec![0; size];
    let bytes = file.read_at(&mut page, offset)?;
    page.truncate(bytes);
    Ok((bytes > 0).then_some(page))
}

pub fn bytes(file: &File) -> u64 {
    file.metadata().map_or(0, |metadata| metadata.len())
}
