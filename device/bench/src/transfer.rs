// SPDX-License-Identifier: MIT OR Apache-2.0
//! The I/Os of `steady`'s own threads, for `host` and `arrivals`. They are synchronous, and their
//! places depend only on the seed and the I/O's number, not on the thread or the time.

use std::fs::{File, OpenOptions};
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use steadyio_core::histogram::Histogram;
use steadyio_core::latency::Latencies;
use steadyio_core::memory::{AlignedBuffer, MemoryError};
use steadyio_core::random::{below, draw};

use crate::fio::output::JobOutput;
use crate::fio::think::{Target, is_read};
use crate::spec::workload::{Data, FileSync, Job};

/// The number of random numbers per I/O: offset and direction.
const DRAWS: u64 = 2;

/// The reason why a load ended early.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The device cannot be opened, or a thread cannot be set up.
    #[error("{what}")]
    Io { what: String, source: io::Error },
    /// No memory for a buffer.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// Ctrl-C or another signal.
    #[error("interrupted")]
    Interrupted,
}

/// The results of one thread.
#[derive(Debug, Default)]
pub struct Done {
    pub latencies: Latencies,
    pub bytes: u64,
    pub errors: u64,
    pub errno: i32,
}

impl Done {
    /// Adds an I/O of `bytes` that ended `ns` after its start.
    pub fn add(&mut self, moved: io::Result<()>, bytes: u64, ns: u64) {
        match moved {
            Ok(()) => {
                self.latencies.add(ns);
                self.bytes += bytes;
            }
            Err(error) => {
                self.errors += 1;
                self.errno = error.raw_os_error().unwrap_or(rustix::io::Errno::IO.raw_os_error());
            }
        }
    }

    /// Adds this result to that of the job's other threads.
    pub fn add_to(self, output: &mut JobOutput) {
        let latency: Histogram = self.latencies.histogram();
        output.latency.merge(&latency);
        output.count = output.latency.count();
        output.bytes += self.bytes;
        output.errors += self.errors;
        output.fatal = output.fatal.max(self.errno);
    }
}

/// The open target of a job.
#[derive(Debug)]
pub struct Transfer<'a> {
    job: &'a Job,
    seed: u64,
    file: File,
    offset_bytes: u64,
    blocks: u64,
}

impl<'a> Transfer<'a> {
    pub fn open(job: &'a Job, seed: u64, target: &Target) -> Result<Transfer<'a>, LoadError> {
        let file = open(&target.path, job)
            .map_err(|source| LoadError::Io { what: target.path.display().to_string(), source })?;
        let blocks = (target.size_bytes / (job.bs_kib * 1_024)).max(1);
        Ok(Transfer { job, seed, file, offset_bytes: target.offset_bytes, blocks })
    }

    /// Allocates memory for one I/O.
    pub fn buffer(&self) -> Result<AlignedBuffer, MemoryError> {
        let mut buffer = AlignedBuffer::new((self.job.bs_kib * 1_024) as usize, false)?;
        if self.job.data == Data::Random {
            for (index, bytes) in buffer.chunks_exact_mut(8).enumerate() {
                bytes.copy_from_slice(&draw(self.seed, index as u64).to_le_bytes());
            }
        }
        Ok(buffer)
    }

    /// Does the I/O of this number.
    pub fn run(&self, index: u64, buffer: &mut [u8]) -> io::Result<()> {
        let drawn = |n| draw(self.seed, index * DRAWS + n);
        let block =
            if self.job.op.random() { below(drawn(0), self.blocks) } else { index % self.blocks };
        let offset = self.offset_bytes + block * buffer.len() as u64;
        if is_read(self.job, || below(drawn(1), 100)) {
            self.file.read_exact_at(buffer, offset)
        } else {
            self.file.write_all_at(buffer, offset)
        }
    }
}

fn open(path: &Path, job: &Job) -> io::Result<File> {
    let file = job.file.as_ref();
    let mut flags = 0;
    if !file.is_some_and(|file| file.buffered) {
        flags |= libc::O_DIRECT;
    }
    match file.map_or(job.sync, |file| file.sync) {
        FileSync::None => {}
        // Not rustix's DSYNC, which is O_SYNC on Linux.
        FileSync::Dsync => flags |= libc::O_DSYNC,
        FileSync::Full => flags |= libc::O_SYNC,
    }
    OpenOptions::new().read(true).write(job.op.writes()).custom_flags(flags).open(path)
}

/// Sets the timer slack of the calling thread, to which the kernel would otherwise add up to 50 us
/// per sleep.
pub fn sleep_exactly() -> Result<(), LoadError> {
    rustix::thread::set_current_timer_slack(Some(NonZeroU64::MIN)).map_err(|error| LoadError::Io {
        what: "timer slack of a thread".into(),
        source: error.into(),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;
    use crate::spec::expand::{Selection, Spec};

    /// The flags with which a workload's only job opens its file. `tables` and `keys` are parts of
    /// the workload.
    fn opened_with(tables: &str, keys: &str) -> i32 {
        let text = format!(
            "schema = \"steadyio.workload/1\"\nname = \"a\"\nseed = 1\n[length]\nios = 1\n{tables}\
             [[variant]]\nname = \"v\"\n[[job]]\nname = \"rt\"\nclass = \"rt\"\nop = \"write\"\n\
             bs_kib = 4\n{keys}\n"
        );
        let plan = Spec::parse(&text).unwrap().plan(&Selection::default()).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        let opened = open(file.path(), &plan[0].groups[0].points[0].jobs[0]).unwrap();
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", opened.as_raw_fd()));
        let flags = info.unwrap();
        let flags = flags.lines().find_map(|line| line.strip_prefix("flags:")).unwrap();
        i32::from_str_radix(flags.trim(), 8).unwrap()
    }

    #[test]
    fn a_job_opens_its_file_or_the_device_with_the_sync_that_it_names() {
        for (sync, wanted) in [("none", 0), ("dsync", libc::O_DSYNC), ("full", libc::O_SYNC)] {
            let file = format!("file = {{ mib = 1, buffered = true, sync = \"{sync}\" }}");
            let on_file = opened_with("[filesystem]\ntype = \"ext4\"\nmib = 64\n", &file);
            assert_eq!(on_file & libc::O_SYNC, wanted, "{sync}");
            let keys = format!("arrivals = \"periodic\"\ngap_us = 9\nsync = \"{sync}\"");
            assert_eq!(opened_with("", &keys) & libc::O_SYNC, wanted, "{sync}");
        }
    }
}
