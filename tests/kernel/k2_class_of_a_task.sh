#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: the queue is that of the I/O priority or, without one, of the scheduling policy
# DEVICE: none
# MODULES: null_blk nr_devices=0
. "$STEADY_TESTS/lib.sh"
set -e

null_blk_create nullb0 completion_nsec=10000
use_k2 nullb0 1 0

# expect_queue QUEUE COMMAND...: what the command reads comes from that queue.
expect_queue() {
	queue=$1
	shift
	trace_begin k2/k2_dispatch
	"$@" dd if=/dev/nullb0 of=/dev/null bs=4k count=1 iflag=direct status=none
	got=$(trace_end | sed -n 's/.*k2_dispatch:.* queue \([0-9]*\) .*/\1/p')
	expect "queue under '$*'" "$got" "$queue"
}

for level in 0 7; do
	expect_queue $level ionice -c 1 -n $level
done
expect_queue 9 ionice -c 2 -n 0
expect_queue 10 ionice -c 3
expect_queue 9 env
# Real-time by scheduling policy: level 4, the middle, as nice 0 is.
expect_queue 4 chrt -f 10
expect_queue 10 chrt -i 0
# An I/O priority outweighs the policy.
expect_queue 10 chrt -f 10 ionice -c 3
expect_queue 2 nice -n 19 ionice -c 1 -n 2

k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
