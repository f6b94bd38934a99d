#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: power_cut_after_writes=N cuts right after the Nth acknowledged write
# DEVICE: test-plain
. "$STEADY_TESTS/lib.sh"

emmc_reload capacity_mib=16 power_cut_after_writes=3
pattern cut 20480 >/run/wanted
dd if=/run/wanted of=/dev/mmcblk0 bs=4096 oflag=direct 2>/run/dd && fail "5 writes went through"
grep -q "3+0 records out" /run/dd || fail "not 3 writes: $(cat /run/dd)"
expect "acknowledged" "$(emmc_stat writes_acked)" 3
expect "dead" "$(emmc_stat dead)" 1
emmc_unbind
emmc_bind
dd if=/dev/mmcblk0 of=/run/found bs=4096 count=3 iflag=direct 2>/dev/null || fail "read"
cmp -n 12288 /run/wanted /run/found || fail "an acknowledged write of a write-through card is gone"
