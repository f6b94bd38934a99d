#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: the journal that a real-time process may wait for in fsync is not cut, that of others is
# DEVICE: test-plain
. "$STEADY_TESTS/lib.sh"
set -e

disk=mmcblk0
mount=$SCRATCH/mount

splits() {
	k2_count $disk background split
}

mkfs.ext4 -q -b 4096 -E lazy_itable_init=0,lazy_journal_init=0,nodiscard $EMMC_NODE
mkdir "$mount"
mount $EMMC_NODE "$mount"
sync
# Least pieces, whatever the device can do.
knob $disk scheduler k2
knob $disk iosched/rt_block_us 1

before=$(splits)
ionice -c 1 -n 0 dd if=/dev/zero of="$mount/rt" bs=4k count=10 oflag=append,sync conv=notrunc \
	status=none
expect "cuts in the journal that fsync waits for" "$(($(splits) - before))" 0

# A process that reads is not in fsync.
"$STEADY_TESTS_BIN/rt_reader" $EMMC_NODE 4 100 3000 4 0 read >/dev/null &
reader=$!
sleep 0.02
for folder in 1 2 3 4 5 6 7 8; do
	mkdir "$mount/$folder"
done
sync "$mount/1"
wait $reader
expect_at_least "cuts in the journal that nobody of real-time waits for" "$(($(splits) - before))" 1

umount "$mount"
k2_expect_settled $disk
knob $disk scheduler none
