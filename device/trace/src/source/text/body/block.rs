// SPDX-License-Identifier: MIT OR Apache-2.0
//! The block events; the I/O priority is there since 6.4.

use super::{Body, dev};
use crate::event::{Class, Comm, Dev, EventKind, Extent, Op, Priority};
use crate::source::rwbs;
use crate::source::text::scan::{Parsed, Scan};

/// The event `block_NAME`; `None` if nobody here needs it.
pub fn parse<'a>(name: &[u8], scan: &mut Scan<'a>) -> Option<Parsed<'a, Body>> {
    Some(match name {
        b"bio_queue" => bio(scan, EventKind::BioQueue),
        b"bio_remap" => remap(scan),
        b"split" => split(scan),
        b"bio_backmerge" => bio(scan, EventKind::BackMerge),
        b"bio_frontmerge" => bio(scan, EventKind::FrontMerge),
        b"rq_merge" => request(scan, EventKind::RequestMerge),
        b"getrq" => bio(scan, EventKind::GetRequest),
        b"plug" => plug(scan),
        b"unplug" => unplug(scan),
        b"rq_insert" => request(scan, EventKind::Insert),
        b"rq_issue" => request(scan, EventKind::Issue),
        b"rq_requeue" => ended(scan, |extent, _| EventKind::Requeue(extent)),
        b"rq_complete" => ended(scan, |extent, error| EventKind::Complete { extent, error }),
        _ => return None,
    })
}

/// `8,0 WS 2048 + 8 [comm]`
fn bio<'a>(scan: &mut Scan<'a>, what: fn(Extent) -> EventKind) -> Parsed<'a, Body> {
    let (dev, op) = target(scan)?;
    let (sector, sectors) = range(scan)?;
    scan.literal(" [")?;
    let what = what(Extent { dev, sector, sectors, op, priority: None });
    Ok(Body { what, comm: comm(scan)? })
}

/// `8,0 WS 4096 () 2048 + 8 be,0,4 [comm]`, before 6.4 without `be,0,4`
fn request<'a>(scan: &mut Scan<'a>, what: fn(Extent) -> EventKind) -> Parsed<'a, Body> {
    let (dev, op) = target(scan)?;
    scan.decimal::<u32>("a number of bytes")?;
    scan.literal(" ")?;
    let what = what(behind_command(scan, dev, op)?);
    Ok(Body { what, comm: comm(scan)? })
}

/// `8,0 WS () 2048 + 8 be,0,4 [-5]`, before 6.4 without `be,0,4`
fn ended<'a>(scan: &mut Scan<'a>, what: fn(Extent, i32) -> EventKind) -> Parsed<'a, Body> {
    let (dev, op) = target(scan)?;
    let extent = behind_command(scan, dev, op)?;
    let error = scan.signed("an error number")?;
    scan.literal("]")?;
    scan.end()?;
    Ok(what(extent, error).into())
}

/// From `() 2048` up to and including `[`.
fn behind_command<'a>(scan: &mut Scan<'a>, dev: Dev, op: Op) -> Parsed<'a, Extent> {
    scan.literal("(")?;
    scan.after(") ")?;
    let (sector, sectors) = range(scan)?;
    scan.literal(" ")?;
    let priority = if scan.rest().first() == Some(&b'[') { None } else { priority(scan)? };
    scan.literal("[")?;
    Ok(Extent { dev, sector, sectors, op, priority })
}

/// `8,0 R 2048 / 4096 [comm]`
fn split<'a>(scan: &mut Scan<'a>) -> Parsed<'a, Body> {
    let (dev, op) = target(scan)?;
    let sector = scan.decimal("a sector")?;
    scan.literal(" / ")?;
    let new_sector = scan.decimal("a sector")?;
    scan.literal(" [")?;
    let bio = Extent { dev, sector, sectors: 0, op, priority: None };
    Ok(Body { what: EventKind::BioSplit { bio, new_sector }, comm: comm(scan)? })
}

/// `254,0 WS 4096 + 8 <- (254,1) 2048`
fn remap<'a>(scan: &mut Scan<'a>) -> Parsed<'a, Body> {
    let (to_dev, op) = target(scan)?;
    let (sector, sectors) = range(scan)?;
    scan.literal(" <- (")?;
    let from_dev = dev(scan, ",")?;
    scan.literal(") ")?;
    let from_sector = scan.decimal("a sector")?;
    scan.end()?;
    let to = Extent { dev: to_dev, sector, sectors, op, priority: None };
    Ok(EventKind::BioRemap { to, from: (from_dev, from_sector) }.into())
}

/// `[comm]`
pub fn plug<'a>(scan: &mut Scan<'a>) -> Parsed<'a, Body> {
    scan.literal("[")?;
    Ok(Body { what: EventKind::Plug, comm: comm(scan)? })
}

/// `[comm] 3`
pub fn unplug<'a>(scan: &mut Scan<'a>) -> Parsed<'a, Body> {
    scan.literal("[")?;
    let mut behind = *scan;
    behind.after_last("] ")?;
    let comm = Comm::new(&scan.rest()[..scan.rest().len() - behind.rest().len() - 2]);
    behind.decimal::<u32>("a number of requests")?;
    behind.end()?;
    Ok(Body { what: EventKind::Unplug, comm })
}

/// `8,0 WS `
fn target<'a>(scan: &mut Scan<'a>) -> Parsed<'a, (Dev, Op)> {
    let dev = dev(scan, ",")?;
    scan.literal(" ")?;
    let expected = "an operation in capital letters";
    let mut behind = *scan;
    let letters = behind.until(b' ', expected)?;
    if !letters.iter().all(u8::is_ascii_uppercase) {
        return scan.wrong(expected);
    }
    *scan = behind;
    Ok((dev, rwbs::parse(letters)))
}

/// `2048 + 8`
fn range<'a>(scan: &mut Scan<'a>) -> Parsed<'a, (u64, u32)> {
    let sector = scan.decimal("a sector")?;
    scan.literal(" + ")?;
    Ok((sector, scan.decimal("a number of sectors")?))
}

/// `be,0,4 `: class, hint and level; perf cannot name the class and prints `0x2,0,4`. A class that the kernel
/// itself calls invalid is none that is known.
fn priority<'a>(scan: &mut Scan<'a>) -> Parsed<'a, Option<Priority>> {
    let mut behind = *scan;
    let class = match behind.until(b',', "a priority class")? {
        b"none" | b"0x0" => Some(Class::None),
        b"rt" | b"0x1" => Some(Class::Rt),
        b"be" | b"0x2" => Some(Class::Be),
        b"idle" | b"0x3" => Some(Class::Idle),
        b"invalid" | [b'0', b'x', b'4'..=b'7'] => None,
        _ => return scan.wrong("a priority class"),
    };
    *scan = behind;
    scan.decimal::<u16>("a priority hint")?;
    scan.literal(",")?;
    let level = scan.decimal("a priority level")?;
    scan.literal(" ")?;
    Ok(class.map(|class| Priority { class, level }))
}

/// The rest is a name and `]`. The name may have any bytes, brackets too.
pub fn comm<'a>(scan: &mut Scan<'a>) -> Parsed<'a, Comm> {
    Ok(Comm::new(scan.up_to_final(b']', "a name and ]")?))
}
