#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: real-time that sleeps uninterruptibly for another device is guarded as well as one that sleeps
# DEVICE: test-plain
# MODULES: null_blk nr_devices=0
. "$STEADY_TESTS/lib.sh"
set -e

use_k2 mmcblk0 1 0
# max_ns [OTHER]: the longest read, which comes MS after the one before
max_ns() {
	"$STEADY_TESTS_BIN/rt_reader" /dev/mmcblk0 64 200 "=$((ms * 1000))" 512 4 read "$@" |
		awk '{ print $2 }'
}
for ms in 3 20 50; do
	null_blk_create nullb0 completion_nsec=$((ms * 1000000))
	asleep_ns=$(max_ns)
	elsewhere_ns=$(max_ns /dev/nullb0)
	echo "every $ms ms: asleep $asleep_ns ns, in a read of another device $elsewhere_ns ns"
	expect_at_most "$ms ms elsewhere" "$elsewhere_ns" $((asleep_ns * 12 / 10))
	null_blk_remove nullb0
done
k2_expect_settled mmcblk0
knob mmcblk0 scheduler none
