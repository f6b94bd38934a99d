#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: tags for 4 to 7 requests, allocated afresh, also keep one for real-time
# DEVICE: none
# MODULES: null_blk nr_devices=0
# COMPAT: shallow_depth.h
. "$STEADY_TESTS/lib.sh"
set -e

# 4 and 6 come with the device (twice its queue), 7 replaces 2: each time a new map of tags. Without a
# tag kept, real-time would wait for 4 to 7 requests of 1 ms, and more.
for case in "2 4" "3 6" "1 7"; do
	depth=${case% *} tags=${case#* }
	null_blk_create nullb0 completion_nsec=1000000 hw_queue_depth="$depth"
	use_k2 nullb0 1 0
	knob nullb0 nr_requests "$tags"
	max_ns=$("$STEADY_TESTS_BIN/rt_reader" /dev/nullb0 4 15 5000 4 64 read | awk '{ print $2 }')
	echo "nr_requests=$(knob nullb0 nr_requests): rt max $max_ns ns"
	expect_at_most "rt latency with $tags new tags" "$max_ns" 2100000
	k2_expect_settled nullb0
	# The bitmap that k2 replaced is also freed without a leak.
	knob nullb0 nr_requests 64
	knob nullb0 nr_requests 5
	dd if=/dev/nullb0 of=/dev/null bs=4k count=8 iflag=direct status=none
	knob nullb0 scheduler none
	null_blk_remove nullb0
done
