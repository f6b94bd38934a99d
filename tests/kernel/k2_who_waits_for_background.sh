#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: background that a real-time thread waits for is cut less and less, and its journal not at all
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
pattern text 4096 >"$mount/text"
sync
echo 3 >/proc/sys/vm/drop_caches
# Least pieces, whatever the device can do.
knob $disk scheduler k2
knob $disk iosched/rt_block_us 1

# sync(1) waits for 8 MiB that the flusher writes, 2048 pieces of 4 KiB.
dd if=/dev/zero of="$mount/data" bs=1M count=8 status=none
before=$(splits)
ionice -c 1 -n 0 sh -c "read -r line <$mount/text; exec sync"
cut=$(($(splits) - before))
expect_at_least "cuts in what a thread waits for" "$cut" 1
expect_at_most "cuts in what a thread waits for" "$cut" 200

before=$(splits)
ionice -c 1 -n 0 dd if=/dev/zero of="$mount/rt" bs=4k count=10 oflag=append,sync conv=notrunc \
	status=none
expect "cuts in the journal that fsync waits for" "$(($(splits) - before))" 0

# A real-time thread that sleeps by itself waits for nobody.
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
