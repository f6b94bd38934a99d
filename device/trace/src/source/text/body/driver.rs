// SPDX-License-Identifier: MIT OR Apache-2.0
//! The events of the drivers: start and end of a command.

use super::Body;
use crate::event::{Command, Driver, EventKind};
use crate::source::drivers::Fnv;
use crate::source::text::scan::{Parsed, Scan};

/// `mmc0: start struct mmc_request[PTR]: cmd_opcode=18 … blocks=8 block_size=512 blk_addr=2048 …`
pub fn mmc_start<'a>(scan: &mut Scan<'a>) -> Parsed<'a, Body> {
    let (key, opcode) = mmc(scan, ": start struct mmc_request[")?;
    scan.after(" blocks=")?;
    let blocks: u32 = scan.decimal("a number of blocks")?;
    scan.literal(" block_size=")?;
    let block_bytes: u32 = scan.decimal("a block size")?;
    scan.literal(" blk_addr=")?;
    let address: u64 = scan.decimal("a block address")?;
    scan.literal(" ")?;
    let Some(bytes) = blocks.checked_mul(block_bytes) else { return scan.wrong("fewer blocks") };
    // A command without data has no address; what stands there is of an earlier one.
    let sector = (blocks > 0).then_some(address);
    let command = Command { driver: Driver::Mmc, key, sector, bytes: Some(bytes), opcode };
    Ok(EventKind::HardwareStart(command).into())
}

/// `mmc0: end struct mmc_request[PTR]: cmd_opcode=18 … bytes_xfered=4096 data_err=0 …`
pub fn mmc_done<'a>(scan: &mut Scan<'a>) -> Parsed<'a, Body> {
    let (key, opcode) = mmc(scan, ": end struct mmc_request[")?;
    scan.after(" bytes_xfered=")?;
    let bytes = scan.decimal("a number of bytes")?;
    scan.literal(" ")?;
    let command = Command { driver: Driver::Mmc, key, sector: None, bytes: Some(bytes), opcode };
    Ok(EventKind::HardwareDone(command).into())
}

/// Up to the opcode: the request's address and the opcode.
fn mmc<'a>(scan: &mut Scan<'a>, request: &'static str) -> Parsed<'a, (u64, Option<u8>)> {
    scan.after(request)?;
    let key = scan.hex("the address of a request")?;
    scan.literal("]: cmd_opcode=")?;
    let opcode = scan.decimal::<u32>("a command number")?;
    scan.literal(" ")?;
    Ok((key, u8::try_from(opcode).ok()))
}

/// `nvme0: disk=nvme0n1, qid=1, cmdid=5, nsid=1, flags=0x0, meta=0x0, cmd=(nvme_cmd_read slba=8, …)`
pub fn nvme_setup<'a>(scan: &mut Scan<'a>) -> Parsed<'a, Body> {
    let key = nvme(scan)?;
    scan.literal("nsid=")?;
    scan.after(", cmd=(")?;
    let opcode = nvme_opcode(scan.until(b' ', "a command")?);
    scan.after_last(")")?;
    scan.end()?;
    // The address is in blocks of the namespace, whose size the event does not tell.
    let command = Command { driver: Driver::Nvme, key, sector: None, bytes: None, opcode };
    Ok(EventKind::HardwareStart(command).into())
}

/// `nvme0: disk=nvme0n1, qid=1, cmdid=5, res=0x0, retries=0, flags=0x0, status=0x0`
pub fn nvme_complete<'a>(scan: &mut Scan<'a>) -> Parsed<'a, Body> {
    let key = nvme(scan)?;
    scan.literal("res=")?;
    scan.after(", status=")?;
    scan.hex("a status")?;
    scan.end()?;
    let command = Command { driver: Driver::Nvme, key, sector: None, bytes: None, opcode: None };
    Ok(EventKind::HardwareDone(command).into())
}

/// Controller, queue and command identifier, as one key. Without a disk it is an administrative command.
fn nvme<'a>(scan: &mut Scan<'a>) -> Parsed<'a, u64> {
    scan.literal("nvme")?;
    let controller: u16 = scan.decimal("the number of a controller")?;
    scan.literal(": ")?;
    if scan.passes("disk=") {
        scan.until(b',', "the name of a disk")?;
        scan.literal(" ")?;
    }
    scan.literal("qid=")?;
    let queue: u16 = scan.decimal("the number of a queue")?;
    scan.literal(", cmdid=")?;
    let command: u32 = scan.decimal("the number of a command")?;
    scan.literal(", ")?;
    Ok(u64::from(controller) << 48 | u64::from(queue) << 32 | u64::from(command))
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

/// `host_no=0 channel=0 id=0 lun=0 … driver_tag=5 scheduler_tag=-1 cmnd=(READ_10 … raw=28 00 …)…`. A host with
/// several queues may have the same tag in each; the place and the bytes of the command tell those apart.
pub fn scsi<'a>(scan: &mut Scan<'a>) -> Parsed<'a, Command> {
    let mut key = Fnv::default();
    for (name, expected) in [
        ("host_no=", "the number of a host"),
        (" channel=", "a channel"),
        (" id=", "a target"),
        (" lun=", "a logical unit"),
    ] {
        scan.literal(name)?;
        key.take(&scan.decimal::<u64>(expected)?.to_le_bytes());
    }
    scan.after(" driver_tag=")?;
    key.take(&scan.signed::<i64>("a tag")?.to_le_bytes());
    scan.after(" raw=")?;
    let opcode = u8::try_from({ *scan }.hex("the bytes of a command")?).ok();
    key.take(scan.until(b')', "the bytes of a command and )")?);
    // The address is in blocks of the unit, whose size the event does not tell.
    Ok(Command { driver: Driver::Scsi, key: key.0, sector: None, bytes: None, opcode })
}
