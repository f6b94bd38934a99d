// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events of the rest of the kernel: interrupts, io_uring, the page cache, the journal, threads, k2.

use super::{Body, dev};
use crate::event::{Dev, EventKind, Extent, Op};
use crate::source::text::scan::{Parsed, Scan};

/// `irq=36 name=nvme0q1` or `irq=36 ret=handled`
pub fn irq<'a>(scan: &mut Scan<'a>, behind: &'static str) -> Parsed<'a, u32> {
    scan.literal("irq=")?;
    let irq = scan.decimal("an interrupt line")?;
    scan.literal(behind)?;
    Ok(irq)
}

/// `ring PTR, req PTR, user_data 0x0, opcode READ, flags 0x200, sq_thread 0`; before 6.4 `non block 1, `
/// stands before `sq_thread`.
pub fn uring_submit<'a>(scan: &mut Scan<'a>) -> Parsed<'a, Body> {
    let request = uring_request(scan)?;
    scan.after(", sq_thread ")?;
    let sq_thread = scan.decimal::<u8>("0 or 1")? != 0;
    scan.end()?;
    Ok(EventKind::UringSubmit { request, sq_thread }.into())
}

/// `ring PTR, req PTR, user_data 0x0, result 4096, cflags 0x0 extra1 0 extra2 0 `
pub fn uring_complete<'a>(scan: &mut Scan<'a>) -> Parsed<'a, Body> {
    let request = uring_request(scan)?;
    scan.after(" result ")?;
    let result = scan.signed("a result")?;
    scan.literal(", cflags 0x")?;
    Ok(EventKind::UringComplete { request, result }.into())
}

/// `ring PTR, request PTR, user_data 0x0, opcode FSYNC, flags 0x10, normal queue, work PTR`
pub fn uring_queue_work<'a>(scan: &mut Scan<'a>) -> Parsed<'a, Body> {
    scan.literal("ring ")?;
    scan.after(", request ")?;
    let request = uring_address(scan)?;
    scan.literal(", user_data 0x")?;
    Ok(EventKind::UringQueueWork { request }.into())
}

/// `ring PTR, request PTR linked after PTR`
pub fn uring_link<'a>(scan: &mut Scan<'a>) -> Parsed<'a, Body> {
    scan.literal("ring ")?;
    scan.after(", request ")?;
    let request = uring_address(scan)?;
    scan.literal(" linked after ")?;
    let after = uring_address(scan)?;
    scan.end()?;
    Ok(EventKind::UringLink { request, after }.into())
}

/// `ring PTR, req PTR, user_data 0x0, fd 7`
pub fn uring_file_get<'a>(scan: &mut Scan<'a>) -> Parsed<'a, Body> {
    let request = uring_request(scan)?;
    scan.after(", fd ")?;
    scan.signed::<i32>("a file descriptor")?;
    scan.end()?;
    Ok(EventKind::UringFileGet { request }.into())
}

fn uring_request<'a>(scan: &mut Scan<'a>) -> Parsed<'a, u64> {
    scan.literal("ring ")?;
    scan.after(", req ")?;
    let request = uring_address(scan)?;
    scan.literal(", ")?;
    Ok(request)
}

fn uring_address<'a>(scan: &mut Scan<'a>) -> Parsed<'a, u64> {
    if scan.passes("(nil)") || scan.passes("(null)") {
        return Ok(0);
    }
    scan.hex("the address of a request")
}

/// `bdi 8:0: ino=12 state=I_SYNC dirtied_when=…`
pub fn writeback<'a>(scan: &mut Scan<'a>) -> Parsed<'a, u64> {
    scan.literal("bdi ")?;
    scan.after(": ino=")?;
    let inode = scan.decimal("an inode")?;
    scan.literal(" state=")?;
    Ok(inode)
}

/// `bdi 8:0: limit=… paused=0 pause=200 period=…`, in ms; below 0 if the thread goes on.
pub fn dirty_pause<'a>(scan: &mut Scan<'a>) -> Parsed<'a, Body> {
    scan.literal("bdi ")?;
    scan.after(" pause=")?;
    let ms: i64 = scan.signed("a pause in ms")?;
    scan.literal(" period=")?;
    let pause_ns = u64::try_from(ms).unwrap_or(0).saturating_mul(1_000_000);
    Ok(EventKind::DirtyPause { pause_ns }.into())
}

/// `dev 8:0 ino c pfn=0x1b9ea7 ofs=0 order=0` or, of readahead, `dev=8:0 ino=c index=0 …`
pub fn page_cache_add<'a>(
    scan: &mut Scan<'a>,
    before_dev: &'static str,
    before_inode: &'static str,
) -> Parsed<'a, Body> {
    scan.literal("dev")?;
    scan.literal(before_dev)?;
    let dev = dev(scan, ":")?;
    scan.literal(before_inode)?;
    let inode = scan.hex("an inode")?;
    scan.literal(" ")?;
    Ok(EventKind::PageCacheAdd { dev, inode }.into())
}

/// `dev 8,0 transaction 7 sync 0`
pub fn commit<'a>(scan: &mut Scan<'a>) -> Parsed<'a, (Dev, u32)> {
    scan.literal("dev ")?;
    let dev = dev(scan, ",")?;
    scan.literal(" transaction ")?;
    let transaction = scan.decimal("a transaction")?;
    scan.literal(" sync ")?;
    Ok((dev, transaction))
}

/// `comm=sh pid=10 child_comm=sh child_pid=11`
pub fn fork<'a>(scan: &mut Scan<'a>) -> Parsed<'a, Body> {
    scan.literal("comm=")?;
    scan.after_last(" child_pid=")?;
    let child = scan.decimal("a thread")?;
    scan.end()?;
    Ok(EventKind::Fork { child }.into())
}

/// `pid=11 comm=sh clone_flags=1200011 oom_score_adj=0`
pub fn new_task<'a>(scan: &mut Scan<'a>) -> Parsed<'a, Body> {
    scan.literal("pid=")?;
    let child = scan.decimal("a thread")?;
    scan.literal(" comm=")?;
    scan.after_last(" clone_flags=")?;
    Ok(EventKind::Fork { child }.into())
}

/// `8,0 2048 piece 4096 bytes rest 61440 bytes`; the event does not say what is done there.
pub fn k2_split<'a>(scan: &mut Scan<'a>) -> Parsed<'a, Body> {
    let dev = dev(scan, ",")?;
    scan.literal(" ")?;
    let sector = scan.decimal("a sector")?;
    scan.literal(" piece ")?;
    let at_bytes = *scan;
    let bytes: u32 = scan.decimal("a number of bytes")?;
    if bytes % 512 != 0 {
        return at_bytes.wrong("a multiple of 512 bytes");
    }
    scan.literal(" bytes rest ")?;
    let rest_bytes = scan.decimal("a number of bytes")?;
    scan.literal(" bytes")?;
    scan.end()?;
    let piece = Extent { dev, sector, sectors: bytes / 512, op: Op::default(), priority: None };
    Ok(EventKind::K2Split { piece, rest_bytes }.into())
}
