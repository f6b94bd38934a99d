#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# queue/async_depth, which 7.3 has: background that is no synchronous read takes so many tags at most.
# It begins without a limit, and limits neither synchronous reads nor real-time.
. "$STEADY_STOCK/lib.sh"
set -e

# in_use COMMAND [ARGUMENT]...: the most tags in use at a time while 6 of it want one each.
in_use() {
	for place in $(seq 6); do
		"$@" "$place" &
	done
	most=0
	for _ in $(seq 40); do
		busy=$(sed -n 's/^busy=//p' /sys/kernel/debug/block/nullb0/hctx0/sched_tags)
		[ "$busy" -le "$most" ] || most=$busy
		sleep 0.1
	done
	wait
	echo "$most"
}

write_at() {
	dd if=/dev/zero of=/dev/nullb0 bs=4k seek=$(($1 * 2)) count=1 oflag=direct status=none
}

read_at() {
	dd if=/dev/nullb0 of=/dev/null bs=4k skip=$(($1 * 2)) count=1 iflag=direct status=none
}

rt_write_at() {
	ionice -c 1 dd if=/dev/zero of=/dev/nullb0 bs=4k seek=$(($1 * 2)) count=1 oflag=direct \
		status=none
}

# Each takes 3.5 s, null_blk's limit is 5: the guest is slow to start programs.
null_blk_create nullb0 completion_nsec=3500000000
use_k2 nullb0 32 0
knob nullb0 nr_requests 32
expect "async_depth of a queue that k2 was chosen for" "$(knob nullb0 async_depth)" 32
expect "background writes without a limit" "$(in_use write_at)" 6
knob nullb0 async_depth 2
expect "background writes" "$(in_use write_at)" 2
expect "background reads" "$(in_use read_at)" 6
expect "real-time writes" "$(in_use rt_write_at)" 6
k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
