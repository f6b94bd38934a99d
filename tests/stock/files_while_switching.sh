#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# k2's files in debugfs are read without a pause while the disk's scheduler changes from k2 and to it.
# Not to mq-deadline: on 7.3 a reader of its own file "queued" at that moment is an Oops of the kernel.
. "$STEADY_STOCK/lib.sh"
set -e

null_blk_create nullb0 completion_nsec=10000
for file in counters queued; do
	"$STEADY_TESTS_BIN/read_again" "/sys/kernel/debug/block/nullb0/sched/$file" "$SCRATCH/stop" &
done
for _ in $(seq 20); do
	for scheduler in k2 none; do
		knob nullb0 scheduler $scheduler
	done
done
touch "$SCRATCH/stop"
wait
expect "module users" "$(cat /sys/module/k2/refcnt)" 0
null_blk_remove nullb0
