#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: the device is left idle for a real-time request whose time is known, but not for one that does not come
# DEVICE: test-plain
. "$STEADY_TESTS/lib.sh"
set -e

# p99_ns BG_THREADS: of reads of 64 KiB, 9 ms after the last one each, next to reads of 512 KiB
p99_ns() {
	"$STEADY_TESTS_BIN/rt_reader" /dev/mmcblk0 64 1000 =9000 512 "$1" read | awk '{ print $6 }'
}

bound_us=440
use_k2 mmcblk0 1 0
knob mmcblk0 iosched/rt_block_us $bound_us
alone_ns=$(p99_ns 0)
# One run first: this is about requests on a device that k2 has seen.
p99_ns 1 >"$SCRATCH/learned"
beside_ns=$(p99_ns 1)
echo "alone $alone_ns, beside background $beside_ns"
expect_at_most "real-time beside background" "$beside_ns" $((alone_ns + bound_us * 1000 / 2))
expect_at_least "requests waited for" "$(k2_count mmcblk0 rt anticipated)" 800

# The reader stops, and the device is left idle for its next request. Nobody else makes any then.
"$STEADY_TESTS_BIN/rt_reader" /dev/mmcblk0 64 100 =9000 512 0 read >"$SCRATCH/reader" &
reader=$!
dd if=/dev/mmcblk0 of=/dev/null bs=512K count=100 iflag=direct status=none &
background=$!
sleep 0.4
kill -STOP $reader
wait $background
kill -CONT $reader
wait $reader
cat "$SCRATCH/reader"

k2_expect_settled mmcblk0
knob mmcblk0 scheduler none
