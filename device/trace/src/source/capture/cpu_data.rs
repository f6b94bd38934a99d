// SPDX-License-Identifier: MIT OR Apache-2.0
//! The captured pages of one CPU, in a file without a name or in a folder.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;

use rustix::fs::{MemfdFlags, sendfile};

/// At most, in one call.
const SEND_BYTES: usize = 1 << 30;

/// What one CPU's buffer has given so far.
#[derive(Debug)]
pub struct CpuData {
    pub cpu: u32,
    /// Of the buffer with events of the requested threads only.
    pub of_threads: bool,
    /// In memory first.
    pub file: File,
    pub bytes: u64,
    /// Whether it is where the capture is kept.
    pub in_folder: bool,
}

impl CpuData {
    /// Nothing yet, in memory.
    pub fn in_memory(cpu: u32, of_threads: bool) -> io::Result<CpuData> {
        let file = rustix::fs::memfd_create(format!("steady-cpu{cpu}"), MemfdFlags::CLOEXEC)?;
        Ok(CpuData { cpu, of_threads, file: file.into(), bytes: 0, in_folder: false })
    }

    /// What its file is called in a folder.
    pub fn file_name(&self) -> String {
        let of_threads = if self.of_threads { "-threads" } else { "" };
        format!("cpu{}{of_threads}.raw", self.cpu)
    }

    /// Copies what there is behind what is in a file, to go on there.
    pub fn copy_to(&self, to: File) -> io::Result<File> {
        let mut at = 0;
        while sendfile(&to, &self.file, Some(&mut at), SEND_BYTES)? > 0 {}
        Ok(to)
    }

    /// With what came later, in memory too.
    pub fn followed_by(self, later: &CpuData) -> io::Result<CpuData> {
        let bytes = self.bytes + later.bytes;
        let file = later.copy_to(self.file)?;
        Ok(CpuData { file, bytes, ..self })
    }

    /// Goes on in the file of the folder that holds a copy.
    pub fn go_on_in(&mut self, copy: File) {
        (self.file, self.in_folder) = (copy, true);
    }

    /// Reads it from its beginning; several readers do not disturb each other.
    pub fn read(&self) -> impl Read + '_ {
        BufReader::with_capacity(1 << 18, ReadAt { file: &self.file, at: 0 })
    }
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
