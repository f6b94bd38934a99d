// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether this process sees the numbers of processes that events have.
//!
//! Events have those of the initial PID namespace; a container has a namespace, and numbers, of its own.

use std::fs;

/// The kernel's PROC_PID_INIT_INO.
const INITIAL: u32 = 0xEFFF_FFFC;

/// The PID namespace of this process; `None` if it is the initial one, or the kernel has no others.
pub fn other_than_initial() -> Option<u32> {
    let name = fs::read_link("/proc/self/ns/pid").ok()?;
    let number = name.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()?;
    (number != INITIAL).then_some(number)
}
