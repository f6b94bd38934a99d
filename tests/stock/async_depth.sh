#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# queue/async_depth, which 7.3 has: background that is no synchronous read takes so many tags at most.
# It begins without a limit, and limits neither synchronous reads nor real-time.
. "$STEADY_STOCK/lib.sh"
set -e

tags_in_use() {
	sed -n 's/^busy=//p' /sys/kernel/debug/block/nullb0/hctx0/sched_tags
}

# in_use COUNT COMMAND [ARGUMENT]...: six of it want a tag each, again and again, and COUNT tags come
# to be in use; then no more than COUNT for a while. However long it takes to start the six.
in_use() {
	count=$1
	shift
	rm -f "$SCRATCH/stop"
	for place in $(seq 6); do
		while [ ! -e "$SCRATCH/stop" ]; do "$@" "$place"; done &
	done
	tries=1000
	until [ "$(tags_in_use)" -ge "$count" ]; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || fail "$1: never $count tags in use"
	done
	most=0
	for _ in $(seq 20); do
		busy=$(tags_in_use)
		[ "$busy" -le "$most" ] || most=$busy
		sleep 0.1
	done
	touch "$SCRATCH/stop"
	wait
	expect_at_most "tags in use by $1" "$most" "$count"
}

write_at() {
	dd if=/dev/zero of=/dev/nullb0 bs=4k seek=$(($1 * 100)) count=10 oflag=direct status=none
}

read_at() {
	dd if=/dev/nullb0 of=/dev/null bs=4k skip=$(($1 * 100)) count=10 iflag=direct status=none
}

rt_write_at() {
	ionice -c 1 dd if=/dev/zero of=/dev/nullb0 bs=4k seek=$(($1 * 100)) count=10 oflag=direct \
		status=none
}

null_blk_create nullb0 completion_nsec=300000000
use_k2 nullb0 32 0
knob nullb0 nr_requests 32
expect "async_depth of a queue that k2 was chosen for" "$(knob nullb0 async_depth)" 32
in_use 6 write_at
knob nullb0 async_depth 2
in_use 2 write_at
in_use 6 read_at
in_use 6 rt_write_at
k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
