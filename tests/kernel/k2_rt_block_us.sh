#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: with rt_block_us no background read or write blocks real-time for longer, and without real-time nothing is cut
# DEVICE: test-plain
. "$STEADY_TESTS/lib.sh"
set -e

# max_ns BG_KIB BG_THREADS OP: the reader's longest wait, 64 KiB reads that come at any time
max_ns() {
	"$STEADY_TESTS_BIN/rt_reader" /dev/mmcblk0 64 200 3000 "$1" "$2" "$3" | awk '{ print $2 }'
}

splits() {
	k2_count mmcblk0 background split
}

bound_us=500
use_k2 mmcblk0 1 0
alone_ns=$(max_ns 4 0 read)
unguarded_ns=$(max_ns 512 1 read)
expect "requests cut with rt_block_us 0" "$(splits)" 0
expect "what is learned with rt_block_us 0" \
	"$(cut -d' ' -f6- /sys/block/mmcblk0/queue/iosched/device_model)" ""
knob mmcblk0 iosched/rt_block_us $bound_us
# 5 % for what happens between the end of a piece and the next dispatch.
limit_ns=$(((alone_ns + bound_us * 1000) * 105 / 100))
for op in read write; do
	guarded_ns=$(max_ns 512 1 $op)
	many_ns=$(max_ns 512 16 $op)
	echo "$op: alone $alone_ns, guarded beside one $guarded_ns, beside 16 $many_ns," \
		"unguarded $unguarded_ns"
	expect_at_most "real-time beside 512 KiB ${op}s" "$guarded_ns" "$limit_ns"
	expect_at_most "real-time beside 16 x 512 KiB ${op}s" "$many_ns" "$limit_ns"
done
expect_at_least "real-time with nothing cut" "$unguarded_ns" $((2 * limit_ns))
expect_at_least "requests cut" "$(splits)" 1

# The reader has gone: whole requests, from the first look at it on.
dd if=/dev/mmcblk0 of=/dev/null bs=512K count=40 iflag=direct status=none
before=$(splits)
dd if=/dev/mmcblk0 of=/dev/null bs=512K count=40 iflag=direct status=none
expect "requests cut without real-time" "$(splits)" "$before"
cat /sys/block/mmcblk0/queue/iosched/device_model
k2_expect_settled mmcblk0
knob mmcblk0 scheduler none
