// SPDX-License-Identifier: MIT OR Apache-2.0
//! The direct path: storage without the page cache, to and from memory that others share.
//!
//! In reading order: [`chardisk`] is the interface of `/dev/chardiskN` (kernel/uapi/chardisk.h);
//! [`nvme`] gives a namespace commands through `/dev/ngXnY`;
//! [`disk`] reads and writes one of them, or a block device with O_DIRECT; [`mapping`] is the memory of a
//! file descriptor, [`memory_kind`] says of what kind it is, and [`buffer`] tries which I/O the kernel
//! allows with it, and says which rule refuses it; [`timing`] measures reads and writes; [`card`] is
//! what a card's block devices are used for, and [`taking`] takes it from the block layer.

pub mod buffer;
pub mod card;
pub mod chardisk;
pub mod disk;
pub mod mapping;
pub mod memory_kind;
pub mod nvme;
pub mod taking;
pub mod timing;
