// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the SMART log of an NVMe drive (NVM Express base specification, log page 02h). `wear`
//! calls it.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::path::Path;

use super::{Reserve, Unread, Wear};

const LOG_BYTES: usize = 512;
const GET_LOG_PAGE: u8 = 0x02;
const SMART: u32 = 0x02;
const ALL_NAMESPACES: u32 = u32::MAX;
/// linux/nvme_ioctl.h: _IOWR('N', 0x41, struct nvme_passthru_cmd).
const NVME_IOCTL_ADMIN_CMD: libc::c_ulong = 0xc048_4e41;

/// struct nvme_passthru_cmd of linux/nvme_ioctl.h. A timeout of 0 means the driver's own; after a
/// shorter one it would reset the drive.
#[repr(C)]
#[derive(Default)]
struct Command {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    cdw2: u32,
    cdw3: u32,
    metadata: u64,
    address: u64,
    metadata_bytes: u32,
    data_bytes: u32,
    cdw10: u32,
    cdw11: u32,
    cdw12: u32,
    cdw13: u32,
    cdw14: u32,
    cdw15: u32,
    timeout_ms: u32,
    result: u32,
}

/// Reads the wear of the drive with this block device.
pub fn read(node: &Path) -> Result<Wear, Unread> {
    let log = File::open(node).and_then(|file| log_of(&file));
    log.map(|log| parse(&log)).map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => {
            format!("{}: {error}; reading an NVMe drive's wear needs root", node.display())
        }
        _ => format!("{}: no SMART log: {error}", node.display()),
    })
}

fn log_of(file: &File) -> io::Result<[u8; LOG_BYTES]> {
    let mut log = [0u8; LOG_BYTES];
    // The length is the number of 32-bit words minus one.
    let words = (LOG_BYTES / 4 - 1) as u32;
    let mut command = Command {
        opcode: GET_LOG_PAGE,
        namespace: ALL_NAMESPACES,
        address: log.as_mut_ptr() as u64,
        data_bytes: LOG_BYTES as u32,
        cdw10: words << 16 | SMART,
        ..Command::default()
    };
    // SAFETY: the command names `log` and its length, and both live until the call returns.
    let status = unsafe { libc::ioctl(file.as_raw_fd(), NVME_IOCTL_ADMIN_CMD as _, &mut command) };
    match status {
        0 => Ok(log),
        status if status > 0 => Err(io::Error::other(format!("NVMe status {status:#x}"))),
        _ => Err(io::Error::last_os_error()),
    }
}

fn parse(log: &[u8; LOG_BYTES]) -> Wear {
    const SPARE_IS_LOW: u8 = 1;
    let percent = |byte: u8| f64::from(byte) / 100.0;
    // 16 bytes; no drive counts beyond the first eight.
    let errors = log[160..168].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    Wear {
        used_ratio: Some(percent(log[5])),
        reserve: Some(match log[0] & SPARE_IS_LOW {
            0 => Reserve::Normal,
            _ => Reserve::Warning,
        }),
        spare_ratio: Some(percent(log[3])),
        media_errors: Some(errors),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_log_has_life_spare_and_errors() {
        let mut log = [0; LOG_BYTES];
        (log[0], log[3], log[5], log[160], log[161]) = (1, 9, 120, 2, 1);
        let wear = parse(&log);
        assert_eq!((wear.used_ratio, wear.reserve), (Some(1.2), Some(Reserve::Warning)));
        assert_eq!((wear.spare_ratio, wear.media_errors), (Some(0.09), Some(258)));
    }

    #[test]
    fn the_command_has_the_size_that_the_ioctl_names() {
        assert_eq!(size_of::<Command>(), 0x48);
    }

    #[test]
    fn a_node_without_such_a_log_is_named() {
        let error = read(Path::new("/dev/null")).unwrap_err();
        assert!(error.starts_with("/dev/null: no SMART log"), "{error}");
    }
}
