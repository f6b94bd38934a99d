// SPDX-License-Identifier: MIT OR Apache-2.0
//! Direct writes from a few buffers: several in flight with io_uring, otherwise one after the
//! other.
//!
//! A buffer is busy from [`Disk::write`] until its completion was seen. Completions are collected
//! by [`Disk::wait`] and handed out by [`Disk::next_done`].

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use io_uring::types::{Fd, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode};

use crate::config::EngineChoice;
use crate::mcap::encoder::FileRange;
use crate::memory::{AlignedBuffer, MemoryError};
use crate::source::now_ns;

/// Marks a sync among the completions; writes are marked with their buffer.
const SYNC: u64 = u64::MAX;
/// More than there are buffers.
const ENTRIES: u32 = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskOp {
    /// The write of this buffer.
    Write(usize),
    Sync,
}

/// Something that was done, or failed.
#[derive(Debug)]
pub struct Done {
    pub what: DiskOp,
    /// From its submission on.
    pub ns: u64,
    pub result: io::Result<()>,
}

enum Engine {
    /// And whether the kernel has the buffers pinned once for all.
    IoUring(Box<IoUring>, bool),
    Pwrite,
}

#[derive(Debug)]
struct WriteBuffer {
    buffer: AlignedBuffer,
    /// Bytes in flight, and since when.
    busy: Option<(usize, u64)>,
}

/// Buffers and the engine.
pub struct Disk {
    engine: Engine,
    slots: Vec<WriteBuffer>,
    syncing_since_ns: Option<u64>,
    done: VecDeque<Done>,
}

impl Disk {
    /// Buffers of these sizes.
    pub fn new(choice: EngineChoice, sizes: &[usize], locked: bool) -> Result<Disk, DiskError> {
        let slot =
            |&bytes| Ok(WriteBuffer { buffer: AlignedBuffer::new(bytes, locked)?, busy: None });
        let slots = sizes.iter().map(slot).collect::<Result<Vec<_>, MemoryError>>()?;
        let io_uring = || {
            let ring = IoUring::new(ENTRIES)?;
            let pinned = pin(&ring, &slots);
            Ok(Engine::IoUring(Box::new(ring), pinned))
        };
        let engine = match choice {
            EngineChoice::Pwrite => Engine::Pwrite,
            EngineChoice::IoUring => io_uring().map_err(DiskError::IoUring)?,
            // Old kernels lack io_uring; product images and containers often forbid it.
            EngineChoice::Best => io_uring().unwrap_or(Engine::Pwrite),
        };
        let done = VecDeque::with_capacity(slots.len() + 1);
        Ok(Disk { engine, slots, syncing_since_ns: None, done })
    }

    /// Name of the engine in use.
    pub fn engine(&self) -> &'static str {
        match self.engine {
            Engine::IoUring(..) => "io_uring",
            Engine::Pwrite => "pwrite",
        }
    }

    /// Whether no write of this buffer is in flight.
    pub fn is_free(&self, slot: usize) -> bool {
        self.slots[slot].busy.is_none()
    }

    /// The memory of a buffer that is not busy.
    pub fn buffer(&mut self, slot: usize) -> &mut [u8] {
        assert!(self.slots[slot].busy.is_none(), "the device reads from this buffer");
        &mut self.slots[slot].buffer
    }

    /// Whether anything is in flight.
    pub fn is_idle(&self) -> bool {
        self.syncing_since_ns.is_none() && self.slots.iter().all(|slot| slot.busy.is_none())
    }

    /// Whether a sync is in flight.
    pub fn is_syncing(&self) -> bool {
        self.syncing_since_ns.is_some()
    }

    /// Submits the write of a buffer. The file must stay open until it completes.
    pub fn write(&mut self, file: &File, slot: usize, place: FileRange) {
        let at = &mut self.slots[slot];
        assert!(at.busy.is_none(), "the device reads from this buffer");
        at.busy = Some((place.bytes, now_ns()));
        let bytes = &at.buffer[..place.bytes];
        match &mut self.engine {
            Engine::Pwrite => {
                let result = file.write_all_at(bytes, place.offset);
                self.finish(slot as u64, result);
            }
            Engine::IoUring(ring, pinned) => {
                let (fd, start, offset) = (Fd(file.as_raw_fd()), bytes.as_ptr(), place.offset);
                let length = u32::try_from(place.bytes).unwrap_or(u32::MAX);
                let entry = match pinned {
                    // There are fewer buffers than that.
                    true => opcode::WriteFixed::new(fd, start, length, slot as u16)
                        .offset(offset)
                        .build(),
                    false => opcode::Write::new(fd, start, length).offset(offset).build(),
                };
                let entry = entry.user_data(slot as u64);
                // SAFETY: the buffer belongs to `self`, is not handed out while it is busy, and
                // `drop` waits for it.
                let pushed = unsafe { ring.submission().push(&entry) };
                self.submit(slot as u64, pushed.is_ok());
            }
        }
    }

    /// Submits a sync, which makes durable all writes whose completion was seen. One at a time.
    pub fn sync(&mut self, file: &File) {
        assert!(self.syncing_since_ns.is_none(), "one sync at a time");
        self.syncing_since_ns = Some(now_ns());
        match &mut self.engine {
            Engine::Pwrite => {
                let result = file.sync_data();
                self.finish(SYNC, result);
            }
            Engine::IoUring(ring, _) => {
                let fd: RawFd = file.as_raw_fd();
                let entry = opcode::Fsync::new(Fd(fd)).flags(FsyncFlags::DATASYNC).build();
                // SAFETY: no memory but the entry.
                let pushed = unsafe { ring.submission().push(&entry.user_data(SYNC)) };
                self.submit(SYNC, pushed.is_ok());
            }
        }
    }

    fn submit(&mut self, user_data: u64, pushed: bool) {
        let Engine::IoUring(ring, _) = &mut self.engine else { return };
        let result = if pushed {
            ring.submit()
        } else {
            Err(io::Error::other("the submission queue is full"))
        };
        match result {
            // The kernel takes the rest at the next call.
            Ok(_) => {}
            Err(error) if transient(&error) => {}
            Err(error) => self.finish(user_data, Err(error)),
        }
    }

    /// Waits until something completes, or for this long. Returns at once if nothing is in flight.
    pub fn wait(&mut self, timeout: Option<Duration>) {
        if self.is_idle() || !self.done.is_empty() {
            return;
        }
        let Engine::IoUring(ring, _) = &mut self.engine else { return };
        // After a timeout, a signal or a full queue the caller checks again.
        let _ = match timeout {
            None => ring.submitter().submit_and_wait(1),
            Some(timeout) => {
                let timespec = Timespec::from(timeout);
                ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&timespec))
            }
        };
        self.collect();
    }

    /// The next completion.
    pub fn next_done(&mut self) -> Option<Done> {
        if self.done.is_empty() {
            self.collect();
        }
        self.done.pop_front()
    }

    fn collect(&mut self) {
        loop {
            let Engine::IoUring(ring, _) = &mut self.engine else { return };
            let Some(entry) = ring.completion().next() else { return };
            let result = match entry.result() {
                error @ ..0 => Err(io::Error::from_raw_os_error(-error)),
                bytes => self.whole(entry.user_data(), bytes),
            };
            self.finish(entry.user_data(), result);
        }
    }

    /// A direct write that stopped early met the end of the device or of the file.
    fn whole(&self, user_data: u64, written: i32) -> io::Result<()> {
        let slot = usize::try_from(user_data).ok().and_then(|slot| self.slots.get(slot));
        match slot.and_then(|slot| slot.busy) {
            Some((bytes, _)) if usize::try_from(written) != Ok(bytes) => {
                Err(io::Error::new(io::ErrorKind::WriteZero, format!("{written} of {bytes} bytes")))
            }
            _ => Ok(()),
        }
    }

    fn finish(&mut self, user_data: u64, result: io::Result<()>) {
        let (what, since_ns) = match usize::try_from(user_data) {
            Ok(slot) if user_data != SYNC => {
                (DiskOp::Write(slot), self.slots[slot].busy.take().map(|(_, since_ns)| since_ns))
            }
            _ => (DiskOp::Sync, self.syncing_since_ns.take()),
        };
        let now_ns = now_ns();
        self.done.push_back(Done { what, ns: now_ns - since_ns.unwrap_or(now_ns), result });
    }
}

/// Pins the buffers' pages once, so that writes need not. Where the limit on locked memory is too
/// low for it, each write does.
fn pin(ring: &IoUring, slots: &[WriteBuffer]) -> bool {
    let range = |slot: &WriteBuffer| libc::iovec {
        iov_base: slot.buffer.as_ptr().cast_mut().cast(),
        iov_len: slot.buffer.len(),
    };
    let ranges: Vec<libc::iovec> = slots.iter().map(range).collect();
    // SAFETY: the buffers belong to the `Disk` that the ring belongs to, keep their place, and are
    // unmapped after the ring is gone: it is the field before them.
    unsafe { ring.submitter().register_buffers(&ranges) }.is_ok()
}

fn transient(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EBUSY | libc::EINTR))
}

impl Drop for Disk {
    fn drop(&mut self) {
        while !self.is_idle() {
            self.wait(None);
            self.done.clear();
        }
    }
}

/// The engine could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// Requested, but not available.
    #[error(
        "io_uring: {0}; the kernel lacks or forbids it (sysctl kernel.io_uring_disabled, seccomp): \
         choose pwrite"
    )]
    IoUring(io::Error),
    /// No memory for the buffers.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used)]
mod tests {
    use super::*;

    fn write_and_sync(choice: EngineChoice) {
        let mut disk = match Disk::new(choice, &[8_192; 2], false) {
            Err(DiskError::IoUring(error)) => {
                steadyio_testing::skip(&format!("no io_uring here: {error}"));
                return;
            }
            disk => disk.unwrap(),
        };
        let file = tempfile::tempfile().unwrap();
        for slot in 0..2 {
            disk.buffer(slot).fill(slot as u8 + 1);
            let place = FileRange { offset: slot as u64 * 8_192, bytes: 8_192 };
            disk.write(&file, slot, place);
        }
        let mut seen = Vec::new();
        while seen.len() < 2 {
            disk.wait(None);
            while let Some(done) = disk.next_done() {
                done.result.expect("the disk works");
                seen.push(done.what);
            }
        }
        disk.sync(&file);
        disk.wait(None);
        assert_eq!(disk.next_done().unwrap().what, DiskOp::Sync);
        assert!(disk.is_idle());
        let mut bytes = vec![0; 16_384];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert!(bytes[..8_192].iter().all(|&byte| byte == 1));
        assert!(bytes[8_192..].iter().all(|&byte| byte == 2));
    }

    #[test]
    fn both_engines_write_and_sync() {
        write_and_sync(EngineChoice::Pwrite);
        write_and_sync(EngineChoice::IoUring);
    }

    #[test]
    fn an_error_is_told_with_its_buffer() {
        let read_only = File::open("/proc/self/exe").unwrap();
        for choice in [EngineChoice::Pwrite, EngineChoice::Best] {
            let mut disk = Disk::new(choice, &[4_096], false).unwrap();
            disk.write(&read_only, 0, FileRange { offset: 0, bytes: 4_096 });
            disk.wait(None);
            let done = disk.next_done().unwrap();
            assert_eq!(done.what, DiskOp::Write(0));
            assert_eq!(done.result.unwrap_err().raw_os_error(), Some(libc::EBADF));
            assert!(disk.is_free(0));
        }
    }
}
