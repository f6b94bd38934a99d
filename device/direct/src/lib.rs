// SPDX-License-Identifier: MIT OR Apache-2.0
//! The direct path: storage without the page cache, to and from memory shared with others. `steady
//! direct`, the bench and `capi` use it.
//!
//! In reading order: [`chardisk`] is the interface of `/dev/chardiskN` (kernel/uapi/chardisk.h).
//! [`nvme`] sends commands to a namespace through `/dev/ngXnY`. [`disk`] reads and writes one of
//! them, or a block device with O_DIRECT. [`mapping`] is the memory of a file descriptor, and
//! [`memory_kind`] finds its kind. [`buffer`] tries which I/O the kernel allows with it, and names
//! the rule that rejects it. [`timing`] measures reads and writes, and [`background`] reads
//! meanwhile. [`card`] finds the users of a card's block devices, and [`taking`] takes it from the
//! block layer.

pub mod background;
pub mod buffer;
pub mod card;
pub mod chardisk;
pub mod disk;
pub mod mapping;
pub mod memory_kind;
pub mod nvme;
mod ring;
pub mod taking;
pub mod timing;
