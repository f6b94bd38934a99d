#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: what look-ahead holds back goes on when the driver gives a command back
# DEVICE: none
# FLAVOUR: debug
# MODULES: null_blk nr_devices=0 requeue=3,100,0,-1
# COMPAT: insert_flags.h
. "$STEADY_TESTS/lib.sh"
set -e

null_blk_create nullb0 completion_nsec=50000
use_k2 nullb0 2 0
knob nullb0 iosched/rt_block_us 500
"$STEADY_TESTS_BIN/io_stream" /dev/nullb0 jobs=3 rt_jobs=2 ios=50 region_kib=1024 largest_kib=512 &
stream=$!
# A request that nobody dispatches is waited for without end.
for _ in $(seq 60); do
	kill -0 $stream 2>/dev/null || break
	sleep 1
done
if kill -0 $stream 2>/dev/null; then
	cat /sys/kernel/debug/block/nullb0/sched/queued
	fail "still waits after a minute"
fi
wait $stream
expect_at_least "background retried" "$(k2_count nullb0 background retried)" 5
k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
