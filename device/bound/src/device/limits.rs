// SPDX-License-Identifier: MIT OR Apache-2.0
//! The limit that all tables of a device share. `spec` and `blank` use it.

/// The limit of a time. An SD card may pause for seconds, and Linux waits for up to two minutes for
/// an eMMC that does background operations.
pub(super) const LONGEST_NS: u64 = 600_000_000_000;
