// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds whether the process numbers in events are those that this process sees.
//!
//! Events use the numbers of the initial PID namespace. A container has a namespace with other
//! numbers.

use std::fs;

/// The kernel's PROC_PID_INIT_INO.
const INITIAL: u32 = 0xEFFF_FFFC;

/// The PID namespace of this process; `None` for the initial one, and on a kernel without
/// namespaces.
pub fn other_than_initial() -> Option<u32> {
    let name = fs::read_link("/proc/self/ns/pid").ok()?;
    let number = name.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()?;
    (number != INITIAL).then_some(number)
}
