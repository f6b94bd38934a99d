#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: with a command queue the card works on several commands at once, and faster
# DEVICE: test-queue
. "$STEADY_TESTS/lib.sh"

elapsed_us() {
	"$@" 2>/run/dd || fail "$*: $(cat /run/dd)"
	sed -n 's/.* \([0-9.e-]*\) s,.*/\1/p' /run/dd | awk '{ printf "%d", $1 * 1000000 }'
}

expect "command queue" "$(cat /sys/block/mmcblk0/device/cmdq_en)" 1
with_us=$(elapsed_us dd if=/dev/mmcblk0 of=/dev/null bs=8M count=4 iflag=direct)
in_flight=$(emmc_stat inflight_max)
[ "$in_flight" -gt 1 ] || fail "never more than $in_flight in flight"
[ "$in_flight" -le 16 ] || fail "$in_flight in flight, the card takes 16"
expect "left in flight" "$(emmc_stat inflight)" 0
pattern queue 3000000 >/run/wanted
dd if=/run/wanted of=/dev/mmcblk0 bs=1M conv=fsync 2>/dev/null || fail "write"
echo 1 >/proc/sys/vm/drop_caches
cmp -n 3000000 /run/wanted /dev/mmcblk0 || fail "content"

# The same card without queue: one command at a time.
emmc_reload capacity_mib=256 units=4 stripe_kib=16 bus_per_kib_ns=3000 read_base_ns=80000 \
	read_per_kib_ns=8000
expect "command queue" "$(cat /sys/block/mmcblk0/device/cmdq_en)" 0
without_us=$(elapsed_us dd if=/dev/mmcblk0 of=/dev/null bs=8M count=4 iflag=direct)
[ "$with_us" -lt "$without_us" ] || fail "$with_us us with queue, $without_us us without"
