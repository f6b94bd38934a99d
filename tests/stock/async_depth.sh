#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# queue/async_depth, which 7.3 has: background that is no synchronous read takes so many tags at most.
# It begins without a limit, and limits neither synchronous reads nor real-time.
. "$STEADY_STOCK/lib.sh"
set -e

# most_in_use COMMAND [ARGUMENT]...: sets $most to the most tags in use while 6 of it want one each.
most_in_use() {
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
}

# expect_in_use NUMBER WHAT COMMAND [ARGUMENT]...: so many, never more. On a slow machine the last of
# the 6 can start after the first has ended, so with fewer it is tried again.
expect_in_use() {
	wanted=$1 what=$2
	shift 2
	for _ in $(seq 10); do
		most_in_use "$@"
		[ "$most" -lt "$wanted" ] || break
		echo "$what: $most in use"
	done
	expect "$what" "$most" "$wanted"
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
expect_in_use 6 "background writes without a limit" write_at
knob nullb0 async_depth 2
expect_in_use 2 "background writes" write_at
expect_in_use 6 "background reads" read_at
expect_in_use 6 "real-time writes" rt_write_at
k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
