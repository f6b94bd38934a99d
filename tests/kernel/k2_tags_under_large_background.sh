#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: with 2, 4 or 64 tags and 128 x 512 KiB wanting them, all completes and real-time finds a tag
# DEVICE: none
# MODULES: null_blk nr_devices=0
# COMPAT: shallow_depth.h
. "$STEADY_TESTS/lib.sh"
set -e

# 200 us each piece of 64 KiB, one at a time: at most a piece to wait for and one's own 200 us; 25 us
# for the clock and the way there. Without a tag it would be a whole request: 1.6 ms.
limit_ns=425000
null_blk_create nullb0 completion_nsec=200000 hw_queue_depth=1
null_blk_create nullb1 completion_nsec=200000
use_k2 nullb0 1 64
use_k2 nullb1 1 64
measure() {
	"$STEADY_TESTS_BIN/rt_reader" "/dev/$1" 64 15 4000 512 128 "$2" >"$SCRATCH/reader" ||
		fail "an I/O failed next to 128 x 512 KiB, $2"
	read -r _ max_ns _ bg_count _ <"$SCRATCH/reader"
	echo "nr_requests=$(knob "$1" nr_requests) 128 x 512 KiB $2: rt max $max_ns ns," \
		"background $bg_count"
	expect_at_most "rt latency with $(knob "$1" nr_requests) tags, $2" "$max_ns" $limit_ns
	expect_at_least "background completed" "$bg_count" 128
	k2_expect_settled "$1"
}

expect "nr_requests" "$(knob nullb0 nr_requests)" 2
measure nullb0 read
for tags in 4 64; do
	knob nullb1 nr_requests $tags
	measure nullb1 write
done
for disk in nullb0 nullb1; do
	knob $disk scheduler none
	null_blk_remove $disk
done
