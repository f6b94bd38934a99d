#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Scheduler, knobs, nr_requests and readers of debugfs change under load on each disk: data is right.
. "$STEADY_STOCK/lib.sh"
set -e

change() {
	for scheduler in k2 none k2 mq-deadline; do
		knob "$1" scheduler $scheduler
		for nr_requests in 8 64; do
			# "none" has no more requests than the driver has tags.
			knob "$1" nr_requests $nr_requests 2>/dev/null || true
			[ $scheduler = k2 ] || continue
			knob "$1" iosched/split_kib $(($2 % 4 * 8))
			knob "$1" iosched/inflight_max $(($2 % 5 + 1))
			knob "$1" iosched/rt_block_us $(($2 % 2 * 440))
			cat "/sys/kernel/debug/block/$1/sched/"* "/sys/block/$1/queue/iosched/"* >/dev/null
		done
	done
}

for disk in $STEADY_DISKS; do
	name=${disk#/dev/}
	k2_while_streaming "$disk" change
	expect_at_least "$name: rounds" "$rounds" 1
	knob "$name" scheduler none
	echo "$name: data right through $rounds rounds of changes"
done
rmmod k2
insmod "$STEADY_MODULE_K2"
