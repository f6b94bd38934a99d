#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: flushes, FUA writes and fsync on ext4 leave k2's counters balanced
# DEVICE: none
# MODULES: null_blk nr_devices=0
# COMPAT: request_private.h
. "$STEADY_TESTS/lib.sh"
set -e

# cache_size: a volatile write cache, so that flushes reach the driver.
null_blk_create nullb0 completion_nsec=20000 cache_size=1 discard=1
grep -q "write back" /sys/block/nullb0/queue/write_cache || fail "no volatile cache"
use_k2 nullb0 1 4

dd if=/dev/zero of=/dev/nullb0 bs=4k count=16 oflag=direct,dsync status=none
dd if=/dev/zero of=/dev/nullb0 bs=256k count=4 oflag=direct,sync status=none
dd if=/dev/zero of=/dev/nullb0 bs=64k count=8 conv=fsync status=none
blkdiscard /dev/nullb0
k2_expect_settled nullb0

mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 /dev/nullb0
mkdir "$SCRATCH/mount"
mount /dev/nullb0 "$SCRATCH/mount"
for file in 1 2 3 4; do
	dd if=/dev/zero of="$SCRATCH/mount/$file" bs=64k count=4 conv=fsync status=none
done
head -c 3000000 /dev/urandom >"$SCRATCH/data"
cp "$SCRATCH/data" "$SCRATCH/mount/data"
sync
echo 3 >/proc/sys/vm/drop_caches
cmp "$SCRATCH/data" "$SCRATCH/mount/data"
umount "$SCRATCH/mount"
expect_at_least "splits" "$(k2_count nullb0 background split)" 100

k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
