// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ioctls of `/dev/chardiskN`, which kernel/uapi/chardisk.h documents. `disk` and `timing` use
//! them.

use std::fmt;
use std::fs::{self, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{major, minor};
use rustix::ioctl::{Opcode, opcode};
use serde::Serialize;

use crate::mapping::Mapping;

const GROUP: u8 = 0xBC;
const INFO: Opcode = opcode::read_write::<RawInfo>(GROUP, 0);
const REGION: Opcode = opcode::read_write::<RawRegion>(GROUP, 1);
const REGISTER: Opcode = opcode::read_write::<RawRegister>(GROUP, 2);
const UNREGISTER: Opcode = opcode::write::<RawUnregister>(GROUP, 3);
const TRANSFER: Opcode = opcode::read_write::<RawTransfer>(GROUP, 4);
const STATS: Opcode = opcode::read_write::<RawStats>(GROUP, 6);

/// The version of the interface that this supports.
const VERSION: u32 = 1;
const STATS_DEVICE: u32 = 1;

#[repr(C)]
#[derive(Default)]
struct RawInfo {
    flags: u32,
    version: u32,
    mode: u32,
    capabilities: u32,
    bytes: u64,
    card_offset_bytes: u64,
    block_bytes: u32,
    memory_align_bytes: u32,
    command_bytes_max: u32,
    bg_command_bytes_max: u32,
    segments_max: u32,
    chunk_bytes: u32,
    erase_bytes: u32,
    regions: u32,
    buffers_max: u32,
    buffer_bytes_max: u32,
    card: [u8; 32],
    reserved: [u32; 8],
}

#[repr(C)]
#[derive(Default)]
struct RawRegion {
    flags: u32,
    index: u32,
    offset: u64,
    bytes: u64,
    region_flags: u32,
    reserved: u32,
}

#[repr(C)]
#[derive(Default)]
struct RawRegister {
    address: u64,
    bytes: u64,
    flags: u32,
    buffer: u32,
    reserved: [u32; 2],
}

#[repr(C)]
#[derive(Default)]
struct RawUnregister {
    flags: u32,
    buffer: u32,
}

#[repr(C)]
#[derive(Default)]
struct RawTransfer {
    offset: u64,
    bytes: u64,
    buffer_offset: u64,
    buffer: u32,
    flags: u32,
    op: u16,
    ioprio: u16,
    commands: u32,
    done_bytes: u64,
}

#[repr(C)]
#[derive(Default)]
struct RawStats {
    flags: u32,
    scope: u32,
    counters: [u64; 12],
    reserved: [u64; 4],
}

// The sizes in the header, on every machine.
const _: () = assert!(size_of::<RawInfo>() == 136 && size_of::<RawRegion>() == 32);
const _: () = assert!(size_of::<RawRegister>() == 32 && size_of::<RawTransfer>() == 48);
const _: () = assert!(size_of::<RawStats>() == 136);

/// The driver's part of the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// A whole card.
    Own,
    /// One partition; the block layer has the rest.
    Lane,
}

/// The properties of the device.
#[derive(Debug, Clone, Serialize)]
pub struct Info {
    pub card: String,
    pub mode: Mode,
    pub bytes: u64,
    /// The place of offset 0 in the card's user area.
    pub card_offset_bytes: u64,
    pub block_bytes: u32,
    pub memory_align_bytes: u32,
    /// The longest command of a real-time call, and of any other.
    pub command_bytes_max: u32,
    pub bg_command_bytes_max: u32,
    /// The longest part of a call that the driver pins at a time.
    pub chunk_bytes: u32,
    pub erase_bytes: u32,
    pub buffers_max: u32,
    pub buffer_bytes_max: u32,
    pub can_write: bool,
    pub can_discard: bool,
    pub has_cache: bool,
    /// Whether a durable write needs no flush of the cache.
    pub has_durable: bool,
    /// Whether only declared regions are accessible.
    pub has_regions: bool,
    pub regions: Vec<Region>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Region {
    pub offset: u64,
    pub bytes: u64,
    pub read_only: bool,
}

impl Region {
    /// The end, exclusive.
    pub fn end(&self) -> u64 {
        self.offset + self.bytes
    }
}

impl fmt::Display for Region {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let access = if self.read_only { "ro" } else { "" };
        write!(to, "{}+{}{access}", self.offset, self.bytes)
    }
}

/// The counters since the card was taken.
#[derive(Debug, Clone, Serialize)]
pub struct Stats {
    pub reads: u64,
    pub read_bytes: u64,
    pub read_commands: u64,
    pub writes: u64,
    pub write_bytes: u64,
    pub write_commands: u64,
    pub flushes: u64,
    pub discards: u64,
    pub retries: u64,
    pub resets: u64,
    pub errors: u64,
    pub rt_calls: u64,
}

fn call<T>(file: &impl AsRawFd, opcode: Opcode, argument: &mut T) -> io::Result<()> {
    // SAFETY: the opcode contains the size of `argument`, which outlives the call. The caller keeps
    // the memory at the addresses in it mapped.
    match unsafe { libc::ioctl(file.as_raw_fd(), opcode as _, argument) } {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether a character device may be chario's. Another driver's is not opened, because that may
/// have an effect: it starts a watchdog, or waits for a modem. Without sysfs any may be.
pub fn may_be(meta: &Metadata) -> bool {
    let link = format!("/sys/dev/char/{}:{}/subsystem", major(meta.rdev()), minor(meta.rdev()));
    fs::read_link(link).map_or(true, |path| path.ends_with("chardisk"))
}

/// The error for a device that is not one, without asking it.
pub fn not_one() -> io::Error {
    io::Error::from_raw_os_error(libc::ENOTTY)
}

/// Asks for the properties of the device. ENOTTY: it is not a chardisk.
pub fn info(file: &impl AsRawFd) -> io::Result<Info> {
    let mut raw = RawInfo::default();
    call(file, INFO, &mut raw)?;
    if raw.version != VERSION {
        return Err(io::Error::other(format!(
            "the module speaks version {} of the interface, steady version {VERSION}",
            raw.version
        )));
    }
    let can = |bit: u32| raw.capabilities & bit != 0;
    let end = raw.card.iter().position(|&byte| byte == 0).unwrap_or(raw.card.len());
    Ok(Info {
        card: String::from_utf8_lossy(&raw.card[..end]).into_owned(),
        mode: if raw.mode == 2 { Mode::Lane } else { Mode::Own },
        bytes: raw.bytes,
        card_offset_bytes: raw.card_offset_bytes,
        block_bytes: raw.block_bytes,
        memory_align_bytes: raw.memory_align_bytes,
        command_bytes_max: raw.command_bytes_max,
        bg_command_bytes_max: raw.bg_command_bytes_max,
        chunk_bytes: raw.chunk_bytes,
        erase_bytes: raw.erase_bytes,
        buffers_max: raw.buffers_max,
        buffer_bytes_max: raw.buffer_bytes_max,
        can_write: can(0x1),
        can_discard: can(0x2),
        has_cache: can(0x4),
        has_durable: can(0x8),
        has_regions: can(0x10),
        regions: (0..raw.regions).map(|index| region(file, index)).collect::<io::Result<_>>()?,
    })
}

fn region(file: &impl AsRawFd, index: u32) -> io::Result<Region> {
    let mut raw = RawRegion { index, ..RawRegion::default() };
    call(file, REGION, &mut raw)?;
    let read_only = raw.region_flags & 1 != 0;
    Ok(Region { offset: raw.offset, bytes: raw.bytes, read_only })
}

/// The counters of all users of the device.
pub fn stats(file: &impl AsRawFd) -> io::Result<Stats> {
    let mut raw = RawStats { scope: STATS_DEVICE, ..RawStats::default() };
    call(file, STATS, &mut raw)?;
    let [
        reads,
        read_bytes,
        read_commands,
        writes,
        write_bytes,
        write_commands,
        flushes,
        discards,
        retries,
        resets,
        errors,
        rt_calls,
    ] = raw.counters;
    Ok(Stats {
        reads,
        read_bytes,
        read_commands,
        writes,
        write_bytes,
        write_commands,
        flushes,
        discards,
        retries,
        resets,
        errors,
        rt_calls,
    })
}

/// Memory that the device has pinned. Dropping this unpins it.
#[derive(Debug)]
pub struct Registered<'a, F: AsRawFd> {
    file: &'a F,
    memory: &'a Mapping,
    buffer: u32,
}

impl<'a, F: AsRawFd> Registered<'a, F> {
    pub fn new(file: &'a F, memory: &'a Mapping) -> io::Result<Registered<'a, F>> {
        let mut raw = RawRegister {
            address: memory.as_ptr() as u64,
            bytes: memory.bytes() as u64,
            ..RawRegister::default()
        };
        call(file, REGISTER, &mut raw)?;
        Ok(Registered { file, memory, buffer: raw.buffer })
    }

    /// Transfers between the device and the start of the memory. Returns the number of commands.
    pub fn transfer(&self, writes: bool, offset: u64, bytes: usize) -> io::Result<u32> {
        assert!(self.memory.holds(0, bytes));
        let mut raw = RawTransfer {
            offset,
            bytes: bytes as u64,
            buffer: self.buffer,
            op: writes.into(),
            ..RawTransfer::default()
        };
        call(self.file, TRANSFER, &mut raw)?;
        match raw.done_bytes == bytes as u64 {
            true => Ok(raw.commands),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl<F: AsRawFd> Drop for Registered<'_, F> {
    fn drop(&mut self) {
        let mut raw = RawUnregister { flags: 0, buffer: self.buffer };
        // If the card is gone, so is the buffer.
        let _ = call(self.file, UNREGISTER, &mut raw);
    }
}
