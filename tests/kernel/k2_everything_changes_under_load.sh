#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: knobs, nr_requests, scheduler and readers of debugfs, all at once under load: data is right
# DEVICE: none
# MODULES: null_blk nr_devices=0
. "$STEADY_TESTS/lib.sh"
set -e

null_blk_create nullb0 completion_nsec=50000
use_k2 nullb0 2 4
"$STEADY_TESTS_BIN/io_stream" /dev/nullb0 jobs=4 rt_jobs=1 ios=80 region_kib=1024 largest_kib=128 \
	hint_percent=20 sync_percent=5 &
stream=$!
(
	while [ ! -e "$SCRATCH/stop" ]; do
		cat /sys/kernel/debug/block/nullb0/sched/* /sys/block/nullb0/queue/iosched/* \
			>/dev/null 2>&1 || true
		sleep 0.001
	done
) &
reader=$!
round=0
for scheduler in k2 none k2 mq-deadline k2 bfq k2 kyber k2; do
	knob nullb0 scheduler $scheduler
	for nr_requests in 4 5 64 256; do
		round=$((round + 1))
		# "none" has no more requests than the driver has tags.
		knob nullb0 nr_requests $nr_requests 2>/dev/null || true
		[ $scheduler = k2 ] || continue
		knob nullb0 iosched/split_kib $((round % 4 * 4))
		knob nullb0 iosched/inflight_max $((round % 5 + 1))
		knob nullb0 iosched/background_wait_ms_max $((round % 3))
		sleep 0.003
	done
done
touch "$SCRATCH/stop"
wait $reader
wait $stream || fail "the stream"

k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
