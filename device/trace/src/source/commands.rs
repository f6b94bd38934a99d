// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decodes the start and end events of the drivers' commands; `table` names these functions.
//!
//! Addresses in NVMe and SCSI commands count logical blocks. Events do not contain the size of such
//! a block, so these commands get no sector.

use std::hash::{DefaultHasher, Hasher};

use super::fields::Fields;
use crate::event::{Command, Driver};

/// Fields: `mrq cmd_opcode blocks blksz blk_addr`. A command without data (such as a status poll)
/// has 0 blocks, and its address is left over from an earlier command.
pub fn mmc_start(fields: &Fields) -> Option<Command> {
    let bytes = fields.number::<u32>(2)?.checked_mul(fields.number(3)?)?;
    let (driver, key, opcode) = (Driver::Mmc, fields.hex(0)?, fields.number(1));
    let sector = fields.u64(4)?;
    let sector = (bytes > 0).then_some(sector);
    Some(Command { driver, key, sector, bytes: Some(bytes), opcode })
}

/// Fields: `mrq cmd_opcode bytes_xfered`.
pub fn mmc_done(fields: &Fields) -> Option<Command> {
    let (driver, key, opcode) = (Driver::Mmc, fields.hex(0)?, fields.number(1));
    Some(Command { driver, key, sector: None, bytes: Some(fields.number(2)?), opcode })
}

/// Fields: `ctrl_id qid cid ?opcode`. A command's number is unique in its queue while it is in
/// flight.
pub fn nvme(fields: &Fields) -> Option<Command> {
    let (controller, queue, number) = (fields.u64(0)?, fields.u64(1)?, fields.u64(2)?);
    let key = controller << 32 | (queue & 0xffff) << 16 | number & 0xffff;
    // Text has names instead of numbers. These commands move data or wait for it.
    let named = || match fields.bytes(3)? {
        b"nvme_cmd_flush" => Some(0x00),
        b"nvme_cmd_write" => Some(0x01),
        b"nvme_cmd_read" => Some(0x02),
        b"nvme_cmd_write_zeroes" => Some(0x08),
        b"nvme_cmd_dsm" => Some(0x09),
        _ => None,
    };
    let opcode = fields.number(3).or_else(named);
    Some(Command { driver: Driver::Nvme, key, sector: None, bytes: None, opcode })
}

/// Fields: `host_no channel id lun ?driver_tag opcode cmnd`. A host with several queues may use the
/// same tag in each of them. The address and the bytes of the command make the key unique, also
/// without a tag, unless the same command is in flight twice.
pub fn scsi(fields: &Fields) -> Option<Command> {
    let mut key = DefaultHasher::new();
    for slot in 0..4 {
        key.write_u64(fields.u64(slot)?);
    }
    key.write_u64(fields.u64(4).unwrap_or(0));
    let opcode = u8::try_from(fields.hex(5)?).ok();
    key.write(fields.bytes(6)?);
    let (driver, key) = (Driver::Scsi, key.finish());
    Some(Command { driver, key, sector: None, bytes: None, opcode })
}
