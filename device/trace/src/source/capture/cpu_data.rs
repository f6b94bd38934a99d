// SPDX-License-Identifier: MIT OR Apache-2.0
//! The captured pages of one CPU, in files without a name or in a folder.

use std::fs::File;
use std::io::{self, BufReader, Read};
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

    /// How much is in `file`.
    pub fn bytes(&self) -> u64 {
        bytes(&self.file)
    }

    pub fn bytes_with_older(&self) -> u64 {
        self.older.as_ref().map_or(0, bytes) + self.bytes()
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

    /// Reads it from its beginning; several readers do not disturb each other.
    pub fn read(&self) -> impl Read + '_ {
        let from_start = |file| ReadAt { file, at: 0 };
        let older = self.older.as_ref().map(from_start);
        let older = older.map_or(Box::new(io::empty()) as Box<dyn Read>, |older| Box::new(older));
        BufReader::with_capacity(1 << 18, older.chain(from_start(&self.file)))
    }
}

fn bytes(file: &File) -> u64 {
    file.metadata().map_or(0, |metadata| metadata.len())
}

struct ReadAt<'a> {
    file: &'a File,
    at: u64,
}

impl Read for ReadAt<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.file.read_at(buffer, self.at)?;
        self.at += bytes as u64;
        Ok(bytes)
    }
}
