// SPDX-License-Identifier: MIT OR Apache-2.0
//! Accesses an NVMe namespace through its own character device, `/dev/ngXnY`. The program makes the
//! commands, and io_uring passes them to the driver (`NVME_URING_CMD_IO`), without block layer and
//! I/O scheduler. `disk` uses it.
//!
//! A call must be within a [`region`]. It is cut into commands that the drive accepts, with several
//! of them in flight. Identify data and opcodes: NVM Express Base and NVM Command Set Specification
//! 2.0. Before Linux 6.2 the kernel requires CAP_SYS_ADMIN for each command; later the permissions
//! of the node decide.

pub mod order;
pub mod region;

use std::cell::{Cell, RefCell};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

use io_uring::types::Fd;
use io_uring::{IoUring, cqueue, opcode, squeue};
use rustix::fs::{major, minor};
use rustix::ioctl::{Opcode, opcode as number};
use serde::Serialize;
use steadyio_core::device::Device;

use self::order::{Call, Level, Order};
use self::region::Region;
use crate::mapping::Mapping;
use crate::ring::submit;

const GROUP: u8 = b'N';
const ADMIN: Opcode = number::read_write::<Command>(GROUP, 0x41);
const NAMESPACE_ID: Opcode = number::none(GROUP, 0x40);
const URING_IO: Opcode = number::read_write::<Command>(GROUP, 0x80);

const IDENTIFY: u8 = 0x06;
const CNS_NAMESPACE: u32 = 0;
const CNS_CONTROLLER: u32 = 1;
const IDENTIFY_BYTES: usize = 4096;

const FLUSH: u8 = 0x00;
const WRITE: u8 = 0x01;
const READ: u8 = 0x02;

/// The unit of the drive's longest command. No PC has another page size of host memory.
const DRIVE_PAGE_BYTES: u64 = 4096;
/// The command size for a drive whose block device cannot be found. Each page is a segment, and
/// some drivers take few.
const COMMAND_BYTES: u64 = 128 << 10;
/// A command counts blocks in 16 bits.
const BLOCKS_MAX: u64 = 1 << 16;
/// The number of commands of one call in flight.
pub const DEPTH: u32 = 32;

/// `struct nvme_uring_cmd`, and `struct nvme_passthru_cmd`, whose last word is the result.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Command {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    words_2_3: [u32; 2],
    metadata: u64,
    address: u64,
    metadata_bytes: u32,
    bytes: u32,
    words_10_15: [u32; 6],
    timeout_ms: u32,
    result: u32,
}

const _: () = assert!(size_of::<Command>() == 72);

impl Command {
    /// The bytes in a submission entry.
    fn to_bytes(self) -> [u8; 80] {
        let mut bytes = [0; 80];
        // SAFETY: both are plain bytes of at least this size; the struct has no padding.
        unsafe {
            std::ptr::copy_nonoverlapping(
                (&raw const self).cast::<u8>(),
                bytes.as_mut_ptr(),
                size_of::<Command>(),
            );
        }
        bytes
    }
}

/// The properties of a namespace.
#[derive(Debug, Clone, Serialize)]
pub struct Namespace {
    /// The name in `/dev`, for example `ng0n1`.
    pub name: String,
    pub namespace: u32,
    pub bytes: u64,
    pub block_bytes: u64,
    /// The longest command.
    pub command_bytes_max: u64,
    /// Whether the drive has a volatile write cache.
    pub has_cache: bool,
}

/// Whether a character device belongs to a namespace.
pub fn is_namespace(meta: &Metadata) -> bool {
    let link = format!("/sys/dev/char/{}:{}/subsystem", major(meta.rdev()), minor(meta.rdev()));
    fs::read_link(link).is_ok_and(|path| path.ends_with("nvme-generic"))
}

/// The block device of the same namespace: `/dev/nvme0n1` of `/dev/ng0n1`.
pub fn block_device(file: &File) -> Option<Device> {
    let name = name_of(file).ok()?;
    let node = PathBuf::from(format!("/dev/nvme{}", name.strip_prefix("ng")?));
    Device::open(&node).ok()
}

fn name_of(file: &File) -> io::Result<String> {
    let meta = file.metadata()?;
    let link = format!("/sys/dev/char/{}:{}", major(meta.rdev()), minor(meta.rdev()));
    let dir = fs::canonicalize(link)?;
    Ok(dir.file_name().unwrap_or_default().to_string_lossy().into_owned())
}

/// Asks the drive. EACCES or EPERM: the user may not give it commands.
pub fn identify(file: &File) -> io::Result<Namespace> {
    // SAFETY: this ioctl has no argument.
    let namespace = unsafe { libc::ioctl(file.as_raw_fd(), NAMESPACE_ID as _) };
    let namespace = u32::try_from(namespace).map_err(|_| io::Error::last_os_error())?;
    let page = Mapping::anonymous(IDENTIFY_BYTES)?;
    let mut data = [0; IDENTIFY_BYTES];
    identify_page(file, namespace, CNS_CONTROLLER, &page)?;
    page.copy_out(0, &mut data);
    let (mdts, has_cache) = (data[77], data[525] & 1 != 0);
    identify_page(file, namespace, CNS_NAMESPACE, &page)?;
    page.copy_out(0, &mut data);
    let (blocks, block_bytes) = layout(&data).map_err(io::Error::other)?;
    let drive = if mdts == 0 { u64::MAX } else { DRIVE_PAGE_BYTES << mdts.min(40) };
    let kernel = block_device(file).map_or(COMMAND_BYTES, |device| device.request_bytes_max());
    let command = drive.min(kernel).min(BLOCKS_MAX * block_bytes);
    Ok(Namespace {
        name: name_of(file)?,
        namespace,
        bytes: blocks.checked_mul(block_bytes).ok_or_else(|| io::Error::other("its size"))?,
        block_bytes,
        command_bytes_max: (command - command % block_bytes).max(block_bytes),
        has_cache,
    })
}

fn identify_page(file: &File, namespace: u32, what: u32, page: &Mapping) -> io::Result<()> {
    let mut command = Command {
        opcode: IDENTIFY,
        // A controller's page belongs to no namespace.
        namespace: if what == CNS_NAMESPACE { namespace } else { 0 },
        address: page.as_ptr() as u64,
        bytes: IDENTIFY_BYTES as u32,
        words_10_15: [what, 0, 0, 0, 0, 0],
        ..Command::default()
    };
    // SAFETY: the kernel writes the result, and the page, whose length is in `bytes`.
    let status = unsafe { libc::ioctl(file.as_raw_fd(), ADMIN as _, &raw mut command) };
    told(status)
}

/// The number of a namespace's blocks and their length, from its Identify data.
fn layout(data: &[u8; IDENTIFY_BYTES]) -> Result<(u64, u64), String> {
    let mut size = [0; 8];
    size.copy_from_slice(&data[..8]);
    // Bits 5 and 6 are above bits 0 to 3.
    let index = usize::from(data[26] & 0xf) | usize::from(data[26] >> 5 & 0x3) << 4;
    let format = &data[128 + 4 * index..][..4];
    let (metadata, shift) = (u16::from_le_bytes([format[0], format[1]]), format[2]);
    if metadata != 0 {
        return Err(format!("its blocks have {metadata} bytes of metadata: must be 0"));
    }
    if !(9..=16).contains(&shift) {
        return Err(format!("its blocks have 2^{shift} bytes: must be 2^9 to 2^16"));
    }
    Ok((u64::from_le_bytes(size), 1 << shift))
}

/// Converts 0, an NVMe status, or -1 with the kernel's error number.
fn told(status: i32) -> io::Result<()> {
    match status {
        0 => Ok(()),
        1.. => Err(io::Error::other(format!("the drive answers with status {status:#x}"))),
        _ => Err(io::Error::last_os_error()),
    }
}

type Ring = IoUring<squeue::Entry128, cqueue::Entry32>;

/// A queue of commands to a namespace, for one thread.
pub struct Queue {
    ring: RefCell<Ring>,
    /// The ring may hold commands of a failed call, which a later one would send.
    is_broken: Cell<bool>,
    fd: Fd,
    namespace: Namespace,
    region: Arc<Region>,
    /// The memory that the kernel pinned once; other memory is pinned for each command.
    fixed: Option<Arc<Mapping>>,
    /// Who else sends commands in this process, and the level of this queue's calls.
    order: Option<(Arc<Order>, Level)>,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Queue").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

impl Queue {
    /// Makes a queue for an open file, which must live longer, and a part of its namespace.
    pub fn new(file: &File, namespace: &Namespace, region: Arc<Region>) -> io::Result<Queue> {
        let ring = IoUring::builder().build(DEPTH)?;
        let (fd, namespace) = (Fd(file.as_raw_fd()), namespace.clone());
        let (ring, is_broken) = (RefCell::new(ring), Cell::new(false));
        Ok(Queue { ring, is_broken, fd, namespace, region, fixed: None, order: None })
    }

    /// Makes a queue for the same part, with memory that the kernel pins once. Each command has a
    /// separate buffer, because Linux 6.1 rejects one with more pages after the command's start
    /// than a request takes.
    pub fn with_fixed(&self, file: &File, memory: &Arc<Mapping>) -> io::Result<Queue> {
        let queue = Queue::new(file, &self.namespace, self.region.clone())?;
        let command_bytes = self.command_bytes();
        let buffer = |at| libc::iovec {
            iov_base: memory.as_ptr().wrapping_add(at).cast(),
            iov_len: command_bytes.min(memory.bytes() - at),
        };
        let buffers: Vec<_> = (0..memory.bytes()).step_by(command_bytes).map(buffer).collect();
        // SAFETY: the queue owns a share of the memory, and drops it after the ring.
        unsafe { queue.ring.borrow().submitter().register_buffers(&buffers) }?;
        Ok(Queue { fixed: Some(memory.clone()), order: self.order.clone(), ..queue })
    }

    /// Gives all later calls their place in an order, which queues of other threads share.
    pub fn set_order(&mut self, order: Arc<Order>, level: Level) {
        self.order = Some((order, level));
        // Its buffers are as long as another level's commands.
        self.fixed = None;
    }

    /// The longest command of this queue's level.
    fn command_bytes(&self) -> usize {
        let Namespace { command_bytes_max: most, block_bytes, .. } = self.namespace;
        match &self.order {
            Some((order, Level::Background)) => {
                let bytes = most.min(order.limits().background_bytes);
                (bytes - bytes % block_bytes).max(block_bytes) as usize
            }
            _ => most as usize,
        }
    }

    /// The properties of the namespace.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// The accessible part of it.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Transfers whole blocks between the region and the start of the memory. It transfers
    /// everything, or fails.
    pub fn transfer(
        &self,
        writes: bool,
        offset: u64,
        memory: &Mapping,
        bytes: usize,
    ) -> io::Result<()> {
        assert!(memory.holds(0, bytes));
        // SAFETY: the mapping has this many bytes, and outlives the call.
        unsafe { self.run(writes, offset, memory.as_ptr(), bytes) }
    }

    /// Fills the memory from this offset of the region.
    pub fn read_into(&self, offset: u64, memory: &mut [u8]) -> io::Result<()> {
        // SAFETY: the slice has this many bytes, and outlives the call.
        unsafe { self.run(false, offset, memory.as_mut_ptr(), memory.len()) }
    }

    /// Writes the bytes to this offset of the region.
    pub fn write_from(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        // SAFETY: as above; the drive only reads the memory.
        unsafe { self.run(true, offset, bytes.as_ptr().cast_mut(), bytes.len()) }
    }

    /// Cuts a call into commands, and completes them.
    ///
    /// # Safety
    /// `memory` has `bytes` bytes, writable for a read.
    unsafe fn run(
        &self,
        writes: bool,
        offset: u64,
        memory: *mut u8,
        bytes: usize,
    ) -> io::Result<()> {
        let block_bytes = self.namespace.block_bytes;
        if offset % block_bytes != 0 || bytes as u64 % block_bytes != 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let start = self.region.place(writes, offset, bytes as u64)?;
        let command_bytes = self.command_bytes();
        let pieces = (0..bytes).step_by(command_bytes).map(|at| {
            let bytes = command_bytes.min(bytes - at);
            let block = (start + at as u64) / block_bytes;
            Command {
                opcode: if writes { WRITE } else { READ },
                address: memory.wrapping_add(at) as u64,
                bytes: bytes as u32,
                words_10_15: [
                    block as u32,
                    (block >> 32) as u32,
                    (bytes as u64 / block_bytes - 1) as u32,
                    0,
                    0,
                    0,
                ],
                ..Command::default()
            }
        });
        let is_fixed = self.fixed.as_ref().is_some_and(|fixed| fixed.as_ptr() == memory);
        let buffer = |index| is_fixed.then_some(index);
        self.complete_all((0..).map(buffer).zip(pieces))
    }

    /// Makes all earlier writes durable.
    pub fn flush(&self) -> io::Result<()> {
        let flush = Command { opcode: FLUSH, ..Command::default() };
        self.complete_all(std::iter::once((None, flush)))?;
        self.region.forget_cached();
        Ok(())
    }

    /// Runs the commands with their fixed buffers, up to [`DEPTH`] at a time. When it returns, all
    /// have ended; it returns the first error.
    fn complete_all(
        &self,
        mut commands: impl Iterator<Item = (Option<u16>, Command)>,
    ) -> io::Result<()> {
        if self.is_broken.get() {
            return Err(io::Error::other("an earlier call could not send its commands"));
        }
        let ring = &mut *self.ring.borrow_mut();
        let mut call = Call::new(self.order.as_ref().map(|(order, level)| (&**order, *level)));
        let (mut in_flight, mut next, mut outcome) = (0, commands.next(), Ok(()));
        loop {
            while in_flight < DEPTH && outcome.is_ok() {
                let Some((buffer, command)) = next else { break };
                if !call.start() {
                    break;
                }
                outcome = self.push(ring, command, buffer);
                match outcome {
                    Ok(()) => in_flight += 1,
                    Err(_) => call.end(),
                }
                next = commands.next();
            }
            if in_flight == 0 {
                return outcome;
            }
            let sent = submit(ring);
            for done in ring.completion() {
                in_flight -= 1;
                call.end();
                outcome = outcome.and(ended(done.result()));
            }
            if let Err(error) = sent {
                outcome = outcome.and(Err(error));
                // The drive uses the memory of the others until they end.
                let left = ring.submission().len() as u32;
                if in_flight == left {
                    self.is_broken.set(left > 0);
                    return outcome;
                }
            }
        }
    }

    fn push(&self, ring: &mut Ring, command: Command, buffer: Option<u16>) -> io::Result<()> {
        let command = Command { namespace: self.namespace.namespace, ..command };
        let entry = opcode::UringCmd80::new(self.fd, URING_IO)
            .cmd(command.to_bytes())
            .buf_index(buffer)
            .build();
        // SAFETY: the memory of the command lives until its completion, for which the caller waits.
        unsafe { ring.submission().push(&entry) }.map_err(io::Error::other)
    }
}

/// Converts the result of a completion: 0, an NVMe status, or a negative error number.
fn ended(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { told(result) }
}

/// A hint for an error of [`identify`] or of a command.
pub fn hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            " (NVMe commands need CAP_SYS_ADMIN before Linux 6.2, and permission for the node later)"
        }
        Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL) => {
            " (NVMe commands by io_uring need Linux 6.1)"
        }
        _ => "",
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn identified(flbas: u8, index: usize, format: [u8; 4]) -> Result<(u64, u64), String> {
        let mut data = [0; IDENTIFY_BYTES];
        data[..8].copy_from_slice(&1_000u64.to_le_bytes());
        data[26] = flbas;
        data[128 + 4 * index..][..4].copy_from_slice(&format);
        layout(&data)
    }

    #[test]
    fn size_and_blocks_are_those_of_the_format_in_use() {
        assert_eq!(identified(0, 0, [0, 0, 9, 0]), Ok((1_000, 512)));
        assert_eq!(identified(0x13, 3, [0, 0, 12, 1]), Ok((1_000, 4_096)));
        assert_eq!(identified(0x21, 17, [0, 0, 12, 0]), Ok((1_000, 4_096)));
    }

    #[test]
    fn blocks_that_are_not_plain_are_refused() {
        assert!(identified(0, 0, [8, 0, 12, 0]).unwrap_err().contains("8 bytes of metadata"));
        assert!(identified(0, 0, [0, 0, 0, 0]).unwrap_err().contains("2^0 bytes"));
    }

    #[test]
    fn a_command_stands_in_an_entry_as_the_kernel_reads_it() {
        let words_10_15 = [0x0403_0201, 5, 6, 7, 8, 9];
        let command = Command { opcode: READ, namespace: 3, words_10_15, ..Command::default() };
        let bytes = command.to_bytes();
        assert_eq!((bytes[0], bytes[4], &bytes[40..45]), (2, 3, &[1, 2, 3, 4, 5][..]));
        assert_eq!(bytes[72..], [0; 8]);
    }

    #[test]
    fn commands_that_could_not_be_sent_are_not_sent_by_a_later_call() {
        let null = File::options().read(true).write(true).open("/dev/null").unwrap();
        let namespace = Namespace {
            name: "ng0n1".into(),
            namespace: 1,
            bytes: 1 << 20,
            block_bytes: 4_096,
            command_bytes_max: 4_096,
            has_cache: false,
        };
        let region =
            Region::open(("ng0n1", region::Part::Whole), None, (1 << 20, 4_096), true).unwrap();
        let Ok(queue) = Queue::new(&null, &namespace, Arc::new(region)) else {
            steadyio_testing::skip("io_uring is not allowed on this machine");
            return;
        };
        let memory = Mapping::anonymous(8_192).unwrap();
        let ring = queue.ring.borrow().as_raw_fd();
        // SAFETY: all numbers are those of open files; the ring's is another file's meanwhile.
        let kept = unsafe { libc::dup(ring) };
        unsafe { libc::dup2(null.as_raw_fd(), ring) };
        let failed = queue.transfer(false, 0, &memory, 8_192);
        unsafe { libc::dup2(kept, ring) };
        unsafe { libc::close(kept) };
        assert!(failed.is_err(), "{failed:?}");
        let said = queue.transfer(false, 0, &memory, 4_096).unwrap_err().to_string();
        assert!(said.contains("an earlier call could not send its commands"), "{said}");
    }

    #[test]
    fn another_character_device_is_no_namespace() {
        assert!(!is_namespace(&fs::metadata("/dev/null").unwrap()));
    }
}
