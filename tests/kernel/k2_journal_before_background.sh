#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a real-time fsync on ext4 does not wait behind the background's queue for the journal
# DEVICE: test-plain
. "$STEADY_TESTS/lib.sh"
set -e

disk=${STEADY_DEVICE#/dev/}
mount=$SCRATCH/mount
writers=8

mkfs.ext4 -q -b 4096 -E lazy_itable_init=0,lazy_journal_init=0,nodiscard "$STEADY_DEVICE"
mkdir "$mount"
mount "$STEADY_DEVICE" "$mount"
dd if=/dev/zero of="$mount/bg" bs=1M count=32 conv=fsync status=none

# Eight writers, each with 128 KiB outstanding: a queue of 8 x 1.2 ms.
background() {
	while [ ! -e "$SCRATCH/stop" ]; do
		"$STEADY_TESTS_BIN/direct_io" write "$mount/bg" 0 32768 131072 $writers 1
	done
}

# fsync_us: mean of 10 appends with O_SYNC, which is write and fsync, by a real-time process
fsync_us() {
	ionice -c 1 -n 0 dd if=/dev/zero of="$mount/rt" bs=4k count=10 oflag=append,sync \
		conv=notrunc 2>"$SCRATCH/dd" || fail "$(cat "$SCRATCH/dd")"
	awk -F, '/copied/ { split($(NF - 1), s, " "); printf "%d", s[1] * 100000 }' "$SCRATCH/dd"
}

use_k2 "$disk" 1 0
alone_us=$(fsync_us)
background &
sleep 0.05
k2_us=$(fsync_us)
knob "$disk" scheduler mq-deadline
deadline_us=$(fsync_us)
knob "$disk" scheduler k2
touch "$SCRATCH/stop"
wait
echo "fsync alone $alone_us us, beside the background $k2_us, under mq-deadline $deadline_us"

# The journal is at most two requests one after the other, each behind one 128 KiB write, and so is
# the data: three times 1.2 ms.
expect_at_most "beside the background" "$k2_us" "$((alone_us + 3 * 1300))"
expect_at_least "under mq-deadline" "$deadline_us" "$((alone_us + writers * 1200))"

umount "$mount"
k2_expect_settled "$disk"
knob "$disk" scheduler none
