// SPDX-License-Identifier: MIT OR Apache-2.0
//! The commands of drivers, from the fields of their start and end.
//!
//! Addresses in NVMe and SCSI commands count logical blocks, whose size the events do not say; so no sector is
//! given for those.

use super::fields::Fields;
use crate::event::{Command, Driver};

/// Fields: `mrq cmd_opcode blocks blksz blk_addr`. A command without data (a poll of the status) has no blocks; what
/// stands as its address is of an earlier one.
pub fn mmc_start(fields: &Fields) -> Option<Command> {
    let bytes = fields.u32(2)?.checked_mul(fields.u32(3)?)?;
    let sector = fields.u64(4)?;
    Some(Command {
        driver: Driver::Mmc,
        key: fields.u64(0)?,
        sector: (bytes > 0).then_some(sector),
        bytes: Some(bytes),
        opcode: fields.u8(1),
    })
}

/// Fields: `mrq cmd_opcode bytes_xfered`.
pub fn mmc_done(fields: &Fields) -> Option<Command> {
    Some(Command {
        driver: Driver::Mmc,
        key: fields.u64(0)?,
        sector: None,
        bytes: Some(fields.u32(2)?),
        opcode: fields.u8(1),
    })
}

/// Fields: `ctrl_id qid cid ?opcode`. A command's number is unique in its queue while it is in flight.
pub fn nvme(fields: &Fields) -> Option<Command> {
    let (controller, queue, number) = (fields.u64(0)?, fields.u64(1)?, fields.u64(2)?);
    Some(Command {
        driver: Driver::Nvme,
        key: controller << 32 | (queue & 0xffff) << 16 | number & 0xffff,
        sector: None,
        bytes: None,
        // Text has its name.
        opcode: fields.u8(3).or_else(|| nvme_opcode(fields.bytes(3)?)),
    })
}

/// Of the commands that move data or wait for it.
fn nvme_opcode(name: &[u8]) -> Option<u8> {
    match name {
        b"nvme_cmd_flush" => Some(0x00),
        b"nvme_cmd_write" => Some(0x01),
        b"nvme_cmd_read" => Some(0x02),
        b"nvme_cmd_write_zeroes" => Some(0x08),
        b"nvme_cmd_dsm" => Some(0x09),
        _ => None,
    }
}

/// Fields: `host_no channel id lun driver_tag opcode cmnd`. A host with several queues may have the same tag in
/// each; the place and the bytes of the command tell those apart.
pub fn scsi(fields: &Fields) -> Option<Command> {
    let mut key = Fnv::default();
    for slot in 0..6 {
        key.take(&fields.u64(slot)?.to_le_bytes());
    }
    key.take(fields.bytes(6)?);
    Some(Command {
        driver: Driver::Scsi,
        key: key.0,
        sector: None,
        bytes: None,
        opcode: fields.u8(5),
    })
}

/// FNV-1a, so that keys are the same in every run.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn take(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}
