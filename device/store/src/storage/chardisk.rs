// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asks `/dev/chardiskN` for its properties: `CHARDISK_IOC_INFO` of the module chario. `file` calls
//! it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use libc::c_ulong;

/// `struct chardisk_info`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Info {
    flags: u32,
    pub version: u32,
    pub mode: u32,
    pub capabilities: u32,
    pub bytes: u64,
    pub card_offset_bytes: u64,
    pub block_bytes: u32,
    pub memory_align_bytes: u32,
    pub command_bytes_max: u32,
    pub bg_command_bytes_max: u32,
    pub segments_max: u32,
    pub chunk_bytes: u32,
    pub erase_bytes: u32,
    pub regions: u32,
    pub buffers_max: u32,
    pub buffer_bytes_max: u32,
    pub card: [u8; 32],
    reserved: [u32; 8],
}

/// The number that `_IOWR()` of `linux/ioctl.h` computes: direction, size, type, number.
const IOC_INFO: c_ulong = 3 << 30 | (size_of::<Info>() as c_ulong) << 16 | 0xBC << 8;
/// A bit of `Info::capabilities`: `CHARDISK_HAS_REGIONS`.
pub const HAS_REGIONS: u32 = 0x10;
/// The version of the interface that this supports.
const VERSION: u32 = 1;

const _: () = assert!(size_of::<Info>() == 136);

/// Asks the device. ENOTTY: it belongs to another driver.
pub fn info(file: &File) -> io::Result<Info> {
    let mut info = Info::default();
    // SAFETY: the kernel writes as many bytes as the number of the ioctl says.
    let status = unsafe { libc::ioctl(file.as_raw_fd(), IOC_INFO as _, &raw mut info) };
    if status < 0 {
        return Err(io::Error::last_os_error());
    }
    if info.version != VERSION {
        let version = info.version;
        return Err(io::Error::other(format!(
            "its module has version {version} of the interface, and this program knows {VERSION}"
        )));
    }
    Ok(info)
}
