#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: with bad sectors all over the device, no write that succeeded is lost and nothing hangs
# DEVICE: none
# MODULES: null_blk nr_devices=0
# STOCK: yes
. "$STEADY_TESTS/lib.sh"
set -e

null_blk_create nullb0 completion_nsec=20000
use_k2 nullb0 2 4
# 5 sectors in each 512 KiB: first, in the middle of and last in a piece.
for at in $(seq 0 1024 12288); do
	echo "+$at-$at" >"$CONFIGFS/nullb/nullb0/badblocks"
	echo "+$((at + 323))-$((at + 324))" >"$CONFIGFS/nullb/nullb0/badblocks"
	echo "+$((at + 647))-$((at + 648))" >"$CONFIGFS/nullb/nullb0/badblocks"
done
"$STEADY_TESTS_BIN/io_stream" /dev/nullb0 jobs=3 rt_jobs=1 ios=120 region_kib=2048 largest_kib=256 \
	hint_percent=20 sync_percent=10 errors=1 >"$SCRATCH/streams" ||
	fail "$(cat "$SCRATCH/streams")"
cat "$SCRATCH/streams"
failed=$(awk '{ sum += $9 } END { print sum }' "$SCRATCH/streams")
done_count=$(awk '{ sum += $7 } END { print sum }' "$SCRATCH/streams")
expect_at_least "failed I/Os" "$failed" 40
expect_at_most "failed I/Os" "$failed" $((done_count * 3 / 4))

k2_expect_settled nullb0
expect "in flight in the statistics" "$(awk '{ print $9 }' /sys/block/nullb0/stat)" 0
knob nullb0 scheduler none
null_blk_remove nullb0
