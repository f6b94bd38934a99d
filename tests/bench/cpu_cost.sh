#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The guest's part of steady_lab/figures/cpu_cost.py: for each line of $PWD/cases, reads from a null_blk device
# with step.c's marks around them. A line: TAGS SCHEDULER KNOBS CLASS BYTES DEPTH ROUNDS, with KNOBS
# as name=value,... or -, and CLASS as for ionice -c.
STEADY_TESTS=/run/steadyio/project/tests/kernel
# shellcheck source=../kernel/lib.sh
. "$STEADY_TESTS/lib.sh"
set -e

# The device takes no time of its own: nothing is copied, and it completes from a timer.
null_blk_create nullb0 memory_backed=0 completion_nsec=10000 hw_queue_depth=64
null_blk_create nullb1 memory_backed=0 completion_nsec=10000 hw_queue_depth=1

for module in k2 null_blk; do
	echo "module $module $(cat /sys/module/$module/sections/.text)"
done
while read -r tags scheduler knobs class bytes depth rounds; do
	disk=nullb0
	[ "$tags" = 1 ] && disk=nullb1
	knob $disk scheduler "$scheduler"
	for setting in $(echo "$knobs" | tr ',' ' '); do
		[ "$setting" = - ] || knob $disk "iosched/${setting%%=*}" "${setting#*=}"
	done
	ionice -c "$class" "$READER" /dev/$disk "$bytes" "$depth" "$rounds"
	knob $disk scheduler none
done <cases
null_blk_remove nullb0
null_blk_remove nullb1
