#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: however few tags there are, 128 background readers leave one to real-time
# DEVICE: none
# MODULES: null_blk nr_devices=0
# COMPAT: shallow_depth.h
. "$STEADY_TESTS/lib.sh"
set -e

# 1 ms each, one at a time: real-time waits for one request and then takes its own millisecond.
# hw_queue_depth 1 gives nr_requests 2, with words of 64 tags.
null_blk_create nullb0 completion_nsec=1000000 hw_queue_depth=1
null_blk_create nullb1 completion_nsec=1000000
use_k2 nullb0 1 0
use_k2 nullb1 1 0
reader="$STEADY_TESTS_BIN/rt_reader"

measure() {
	max_ns=$("$reader" "/dev/$1" 4 20 5000 4 128 read | awk '{ print $2 }')
	echo "$1 nr_requests=$(knob "$1" nr_requests):" \
		"$(tr '\n' ' ' <"/sys/kernel/debug/block/$1/sched/tags"): $max_ns ns"
	expect_at_most "rt latency with $(knob "$1" nr_requests) tags" "$max_ns" 2100000
	k2_expect_settled "$1"
}

expect "nr_requests" "$(knob nullb0 nr_requests)" 2
measure nullb0
for tags in 4 8 64 256; do
	knob nullb1 nr_requests $tags
	measure nullb1
done

for disk in nullb0 nullb1; do
	knob $disk scheduler none
	null_blk_remove $disk
done
