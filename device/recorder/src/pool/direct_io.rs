// SPDX-License-Identifier: MIT OR Apache-2.0
//! Direct writes from a few buffers: several in flight with io_uring, otherwise one after the
//! other. The writer thread uses it.
//!
//! A buffer is busy from [`Disk::write`] until its completion was seen. [`Disk::wait`] collects
//! completions, and [`Disk::next_done`] returns them.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use io_uring::types::{Fd, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode};
use rustix::event::{PollFd, PollFlags, Timespec as PollTime, poll};

use crate::config::EngineChoice;
use crate::mcap::encoder::FileRange;
use crate::source::now_ns;
use steadyio_core::memory::{AlignedBuffer, MemoryError};

#[cfg(test)]
use super::faults::{Faults, Verdict};

/// The mark of a sync's completion. A write's completion has the number of its buffer.
const SYNC: u64 = u64::MAX;
/// More entries than there are buffers.
const ENTRIES: u32 = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskOp {
    /// The write of this buffer.
    Write(usize),
    Sync,
}

/// A completed or failed operation.
#[derive(Debug)]
pub struct Done {
    pub what: DiskOp,
    /// The time since its submission.
    pub ns: u64,
    pub result: io::Result<()>,
}

enum Engine {
    IoUring(Box<Ring>),
    Pwrite,
}

struct Ring {
    ring: IoUring,
    /// Whether the buffers are registered with the kernel.
    pinned: bool,
    /// Whether a wait can have a timeout (Linux 5.11).
    timed: bool,
}

#[derive(Debug)]
struct WriteBuffer {
    buffer: AlignedBuffer,
    /// The number of bytes in flight, and the time of submission.
    busy: Option<(usize, u64)>,
}

/// Buffers and the engine.
pub struct Disk {
    engine: Engine,
    slots: Vec<WriteBuffer>,
    syncing_since_ns: Option<u64>,
    done: VecDeque<Done>,
    #[cfg(test)]
    pub faults: Faults,
}

impl Disk {
    /// Makes buffers of these sizes, locked or not.
    pub fn new(choice: EngineChoice, sizes: &[(usize, bool)]) -> Result<Disk, DiskError> {
        let slot = |&(bytes, locked)| {
            Ok(WriteBuffer { buffer: AlignedBuffer::new(bytes, locked)?, busy: None })
        };
        let slots = sizes.iter().map(slot).collect::<Result<Vec<_>, MemoryError>>()?;
        let io_uring = || {
            let ring = IoUring::new(ENTRIES)?;
            let (pinned, timed) = (pin(&ring, &slots), ring.params().is_feature_ext_arg());
            Ok(Engine::IoUring(Box::new(Ring { ring, pinned, timed })))
        };
        let engine = match choice {
            EngineChoice::Pwrite => Engine::Pwrite,
            EngineChoice::IoUring => io_uring().map_err(DiskError::of_io_uring)?,
            // Old kernels lack io_uring; product images and containers often forbid it.
            EngineChoice::Best => io_uring().unwrap_or(Engine::Pwrite),
        };
        let done = VecDeque::with_capacity(slots.len() + 1);
        Ok(Disk {
            engine,
            slots,
            syncing_since_ns: None,
            done,
            #[cfg(test)]
            faults: Faults::take(),
        })
    }

    /// The name of the engine in use.
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

    /// Whether nothing is in flight.
    pub fn is_idle(&self) -> bool {
        self.syncing_since_ns.is_none() && self.slots.iter().all(|slot| slot.busy.is_none())
    }

    /// Whether a sync is in flight.
    pub fn is_syncing(&self) -> bool {
        self.syncing_since_ns.is_some()
    }

    /// Submits the write of a buffer. The file must stay open until the completion.
    pub fn write(&mut self, file: &File, slot: usize, place: FileRange) {
        let at = &mut self.slots[slot];
        assert!(at.busy.is_none(), "the device reads from this buffer");
        at.busy = Some((place.bytes, now_ns()));
        let bytes = &at.buffer[..place.bytes];
        #[cfg(test)]
        if let Verdict::Done(result) = self.faults.write(file, place, slot as u64) {
            return self.finish(slot as u64, result);
        }
        match &mut self.engine {
            Engine::Pwrite => {
                let result = file.write_all_at(bytes, place.offset);
                self.finish(slot as u64, result);
            }
            Engine::IoUring(uring) => {
                let (fd, start, offset) = (Fd(file.as_raw_fd()), bytes.as_ptr(), place.offset);
                let length = u32::try_from(place.bytes).unwrap_or(u32::MAX);
                let entry = match uring.pinned {
                    // The number of buffers fits into 16 bits.
                    true => opcode::WriteFixed::new(fd, start, length, slot as u16)
                        .offset(offset)
                        .build(),
                    false => opcode::Write::new(fd, start, length).offset(offset).build(),
                };
                let entry = entry.user_data(slot as u64);
                // SAFETY: the buffer belongs to `self`, is not handed out while it is busy, and
                // `drop` waits for it.
                let pushed = unsafe { uring.ring.submission().push(&entry) };
                self.submit(slot as u64, pushed.is_ok());
            }
        }
    }

    /// Submits a sync. It makes all writes durable whose completion was seen. Only one may be in
    /// flight.
    pub fn sync(&mut self, file: &File) {
        assert!(self.syncing_since_ns.is_none(), "one sync at a time");
        self.syncing_since_ns = Some(now_ns());
        #[cfg(test)]
        if let Verdict::Done(result) = self.faults.sync(SYNC) {
            return self.finish(SYNC, result);
        }
        match &mut self.engine {
            Engine::Pwrite => {
                let result = file.sync_data();
                self.finish(SYNC, result);
            }
            Engine::IoUring(uring) => {
                let fd: RawFd = file.as_raw_fd();
                let entry = opcode::Fsync::new(Fd(fd)).flags(FsyncFlags::DATASYNC).build();
                // SAFETY: the entry refers to no memory.
                let pushed = unsafe { uring.ring.submission().push(&entry.user_data(SYNC)) };
                self.submit(SYNC, pushed.is_ok());
            }
        }
    }

    fn submit(&mut self, user_data: u64, pushed: bool) {
        let Engine::IoUring(uring) = &mut self.engine else { return };
        let result = if pushed {
            uring.ring.submit()
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

    /// Reads a part of a file into a buffer that is not busy, and waits for it.
    pub fn read_back(&mut self, file: &File, slot: usize, place: FileRange) -> io::Result<()> {
        file.read_exact_at(&mut self.buffer(slot)[..place.bytes], place.offset)
    }

    /// Waits for a completion, or for this time. Returns at once if nothing is in flight.
    pub fn wait(&mut self, timeout: Option<Duration>) {
        if self.is_idle() || !self.done.is_empty() {
            return;
        }
        #[cfg(test)]
        if self.faults.is_holding() {
            std::thread::sleep(Duration::from_millis(1));
            return self.collect();
        }
        let Engine::IoUring(uring) = &mut self.engine else { return };
        // The caller checks again after a timeout, a signal or a full queue.
        let _ = match timeout {
            None => uring.ring.submit_and_wait(1),
            Some(timeout) if uring.timed => {
                let timespec = Timespec::from(timeout);
                uring.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&timespec))
            }
            Some(timeout) => uring.poll(timeout),
        };
        self.collect();
    }

    /// Waits for everything in flight, and returns the completions.
    pub fn settle(&mut self) -> Vec<Done> {
        let mut settled = Vec::new();
        loop {
            settled.extend(std::iter::from_fn(|| self.next_done()));
            if self.is_idle() {
                return settled;
            }
            self.wait(None);
        }
    }

    /// Whether any completion that was not returned yet is a failure.
    pub fn has_failed(&mut self) -> bool {
        self.collect();
        self.done.iter().any(|done| done.result.is_err())
    }

    /// The next completion.
    pub fn next_done(&mut self) -> Option<Done> {
        if self.done.is_empty() {
            self.collect();
        }
        self.done.pop_front()
    }

    fn collect(&mut self) {
        #[cfg(test)]
        while let Some((user_data, result)) = self.faults.next_due() {
            self.finish(user_data, result);
        }
        loop {
            let Engine::IoUring(uring) = &mut self.engine else { return };
            let Some(entry) = uring.ring.completion().next() else { return };
            let result = match entry.result() {
                error @ ..0 => Err(io::Error::from_raw_os_error(-error)),
                bytes => self.whole(entry.user_data(), bytes),
            };
            self.finish(entry.user_data(), result);
        }
    }

    /// Checks the length of a direct write. One that stopped early met the end of the device or of
    /// the file.
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
        #[cfg(test)]
        let Some(result) = self.faults.done(user_data, user_data == SYNC, result) else { return };
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

impl Ring {
    /// Waits with a timeout on kernels whose own wait has none.
    fn poll(&mut self, timeout: Duration) -> io::Result<usize> {
        let submitted = self.ring.submit()?;
        // SAFETY: the descriptor is open as long as the ring.
        let fd = unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) };
        let time = PollTime {
            tv_sec: timeout.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&time))?;
        Ok(submitted)
    }
}

/// Pins the buffers' pages once, which saves doing so for each write. If the limit of locked memory
/// is too low, each write does.
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
        self.settle();
    }
}

/// The engine could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// io_uring was requested, but is not available.
    #[error(
        "io_uring: {0}; the kernel lacks or forbids it (sysctl kernel.io_uring_disabled, seccomp): \
         choose pwrite"
    )]
    NoIoUring(io::Error),
    /// Making the ring failed, for example for lack of files or memory.
    #[error("io_uring: {0}")]
    IoUring(io::Error),
    /// No memory for the buffers.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

impl DiskError {
    fn of_io_uring(error: io::Error) -> DiskError {
        match error.raw_os_error() {
            Some(libc::ENOSYS | libc::EPERM | libc::EACCES) => DiskError::NoIoUring(error),
            _ => DiskError::IoUring(error),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used)]
mod tests {
    use std::io::{Read, Write};
    use std::time::Instant;

    use super::*;

    fn write_and_sync(choice: EngineChoice) {
        let mut disk = match Disk::new(choice, &[(8_192, false); 2]) {
            Err(DiskError::NoIoUring(error)) => {
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
    fn a_wait_ends_in_time_on_kernels_whose_own_wait_has_no_timeout() {
        let mut disk = match Disk::new(EngineChoice::IoUring, &[(4_096, false)]) {
            Err(error) => return steadyio_testing::skip(&format!("no io_uring here: {error}")),
            Ok(disk) => disk,
        };
        if let Engine::IoUring(uring) = &mut disk.engine {
            uring.timed = false;
        }
        // A write that stays in flight until the pipe is read.
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let (mut reader, writer) = (File::from(reader), File::from(writer));
        rustix::pipe::fcntl_setpipe_size(&writer, 4_096).unwrap();
        (&writer).write_all(&[0; 4_096]).unwrap();
        disk.write(&writer, 0, FileRange { offset: 0, bytes: 4_096 });
        let started = Instant::now();
        disk.wait(Some(Duration::from_millis(50)));
        assert!(started.elapsed() >= Duration::from_millis(50) && !disk.is_free(0));
        reader.read_exact(&mut [0; 4_096]).unwrap();
        disk.wait(Some(Duration::from_secs(60)));
        assert!(disk.next_done().unwrap().result.is_ok());
    }

    #[test]
    fn an_io_uring_without_files_is_not_called_forbidden() {
        let says = |error| DiskError::of_io_uring(io::Error::from_raw_os_error(error)).to_string();
        assert_eq!(says(libc::EMFILE), "io_uring: Too many open files (os error 24)");
        assert!(says(libc::EPERM).contains("lacks or forbids it"));
    }

    #[test]
    fn nothing_is_left_behind_when_all_is_settled() {
        let read_only = File::open("/proc/self/exe").unwrap();
        for choice in [EngineChoice::Pwrite, EngineChoice::Best] {
            let mut disk = Disk::new(choice, &[(4_096, false); 2]).unwrap();
            for slot in 0..2 {
                disk.write(&read_only, slot, FileRange { offset: 0, bytes: 4_096 });
            }
            assert_eq!(disk.settle().len(), 2);
            assert!(disk.is_idle() && disk.next_done().is_none());
        }
    }

    #[test]
    fn an_error_is_told_with_its_buffer() {
        let read_only = File::open("/proc/self/exe").unwrap();
        for choice in [EngineChoice::Pwrite, EngineChoice::Best] {
            let mut disk = Disk::new(choice, &[(4_096, false)]).unwrap();
            disk.write(&read_only, 0, FileRange { offset: 0, bytes: 4_096 });
            disk.wait(None);
            let done = disk.next_done().unwrap();
            assert_eq!(done.what, DiskOp::Write(0));
            assert_eq!(done.result.unwrap_err().raw_os_error(), Some(libc::EBADF));
            assert!(disk.is_free(0));
        }
    }
}
