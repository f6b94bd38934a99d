#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: the emulated SCSI disk keeps data, has as many slots as its spec says, and takes its time
# DEVICE: test-scsi
. "$STEADY_TESTS/lib.sh"

expect "sectors" "$(cat /sys/block/sda/size)" 131072
expect "model" "$(tr -d ' ' </sys/block/sda/device/model)" TEST-SCSI
expect "slots" "$(cat /sys/block/sda/device/queue_depth)" 4
expect "write cache" "$(knob sda write_cache) $(knob sda fua)" "write back 1"

use_k2 sda 4 0
pattern one 1000000 | head -c 983040 >/run/one
dd if=/run/one of=/dev/sda bs=64K seek=128 conv=fsync 2>/dev/null || fail "write"
expect_at_least flushes "$(scsi_stat flushes)" 1
expect "in the cache after fsync, KiB" "$(scsi_stat cached_kib)" 0
dd if=/run/one of=/dev/sda seek=30M oflag=seek_bytes,direct bs=4096 count=1 2>/dev/null || fail "write"
expect "in the cache, KiB" "$(scsi_stat cached_kib)" 4
durable=$(scsi_stat writes_durable)
dd if=/run/one of=/dev/sda seek=31M oflag=seek_bytes,direct,dsync bs=4096 count=1 2>/dev/null ||
	fail "durable write"
expect "durable writes" "$(scsi_stat writes_durable)" $((durable + 1))

echo 3 >/proc/sys/vm/drop_caches
cmp -n 983040 -i 0:8M /run/one /dev/sda || fail "content"
"$STEADY_TESTS_BIN/io_stream" /dev/sda jobs=4 ios=100 region_kib=256 largest_kib=64 ||
	fail "random I/O"
expect_at_least "commands at a time" "$(scsi_stat inflight_max)" 2
expect_at_most "commands at a time" "$(scsi_stat inflight_max)" 4
k2_expect_settled sda

# Each read takes 100 us and 4 us per KiB.
dd if=/dev/sda of=/dev/null bs=64K count=100 skip=256 iflag=direct 2>/run/dd || fail "$(cat /run/dd)"
seen_us=$(awk -F, '/copied/ { split($(NF - 1), s, " "); printf "%d", s[1] * 10000 }' /run/dd)
expect_at_least "time of a read of 64 KiB, us" "$seen_us" 356
expect_at_most "time of a read of 64 KiB, us" "$seen_us" 360

# A reader of the partition table may still hold it.
for _ in $(seq 500); do
	rmmod steady_scsi 2>/dev/null && break
	sleep 0.01
done
[ ! -e /sys/module/steady_scsi ] || fail "the module cannot be unloaded"
