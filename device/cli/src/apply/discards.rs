// SPDX-License-Identifier: MIT OR Apache-2.0
//! How large a discard may be: k2 does not split it, so it is as long as the task set states.

use std::fs;
use std::path::Path;

use anyhow::ensure;

/// What the kernel is to cut discards to, in bytes. `stated_kib`: the largest that the bound counts, in
/// KiB. Fails if the disk takes no discard that is so small.
pub fn limit_bytes(queue: &Path, stated_kib: u64) -> anyhow::Result<u64> {
    let text = fs::read_to_string(queue.join("discard_granularity")).unwrap_or_default();
    let granularity: u64 = text.trim().parse().unwrap_or(1).max(1);
    let stated_bytes = stated_kib << 10;
    ensure!(
        stated_bytes >= granularity,
        "discard_kib = {stated_kib}: must be at least {}, the disk's discard_granularity",
        granularity.div_ceil(1 << 10)
    );
    Ok(stated_bytes / granularity * granularity)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_a_multiple_of_what_the_disk_takes_and_no_more_than_stated() {
        let queue = tempfile::tempdir().unwrap();
        fs::write(queue.path().join("discard_granularity"), "4194304\n").unwrap();
        let limit = |kib| limit_bytes(queue.path(), kib).map_err(|error| error.to_string());
        assert_eq!([limit(4_096), limit(9_000)], [Ok(4 << 20), Ok(8 << 20)]);
        assert!(limit(4_095).unwrap_err().contains("must be at least 4096"));
    }
}
