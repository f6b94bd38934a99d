#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The guest's part of steady_lab/figures/several_cpus.py: for each line of $PWD/cases, 1 to
# $STEADY_CPUS CPUs read from a null_blk device at once. A line: DISK SCHEDULER KNOBS DEPTH READS,
# with KNOBS as name=value,... or -. Prints for each: CPUS READS NANOSECONDS. Where the kernel counts
# how long locks are held, /proc/lock_stat of the CASEth line and CPUS is in $PWD/locks-CASE-CPUS.
STEADY_TESTS=/run/steadyio/project/tests/kernel
# shellcheck source=../kernel/lib.sh
. "$STEADY_TESTS/lib.sh"
set -e

# A queue for each CPU; of the second one all take from the same 32 tags.
null_blk_create nullb0 memory_backed=0 completion_nsec=10000 \
	submit_queues="$STEADY_CPUS" hw_queue_depth=256
null_blk_create nullb1 memory_backed=0 completion_nsec=10000 \
	submit_queues="$STEADY_CPUS" hw_queue_depth=32 shared_tag_bitmap=1

stat=/proc/lock_stat
case=0
while read -r disk scheduler knobs depth reads; do
	knob "$disk" scheduler "$scheduler"
	for setting in $(echo "$knobs" | tr ',' ' '); do
		[ "$setting" = - ] || knob "$disk" "iosched/${setting%%=*}" "${setting#*=}"
	done
	for cpus in $(seq "$STEADY_CPUS"); do
		[ ! -e $stat ] || echo 0 >$stat
		echo "$cpus $("$SUBMITTERS" "/dev/$disk" "$cpus" "$depth" "$reads")"
		[ ! -e $stat ] || cp $stat "locks-$case-$cpus"
	done
	case=$((case + 1))
	knob "$disk" scheduler none
done <cases
null_blk_remove nullb0
null_blk_remove nullb1
