#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: next to readers of mmcblk, real-time on a lane waits for as long as k2 allows
# DEVICE: test-plain
# FLAVOUR: base
# MODULES: chario
# Prints a line per case, times in us: what docs/reference/chario.md shows.
. "$STEADY_TESTS/lib.sh"
set -e

emmc_partition 2048 262144 264192 65536

# measure NODE: 64 KiB reads while four processes read 512 KiB of the first partition.
measure() {
	pids=
	for _ in 1 2 3 4; do
		while :; do dd if=/dev/mmcblk0p1 of=/dev/null bs=512K iflag=direct 2>/dev/null; done &
		pids="$pids $!"
	done
	result=$("$STEADY_TESTS_BIN/rt_reader" "$1" 64 300 3000 4 0 read)
	for pid in $pids; do
		kill "$pid"
	done
	wait
	max_ns=$(echo "$result" | awk '{ print $2 }')
	line=$(echo "$result" | awk '{ printf "%d %d %d %d %d", $8 / 1000, $6 / 1000, $10 / 1000, $2 / 1000, $12 }')
}

# case_of SCHEDULER: the same reads through mmcblk, then on a lane.
case_of() {
	measure /dev/mmcblk0p2
	mmcblk_ns=$max_ns
	echo "mmcblk0p2 $1 $line"
	echo mmcblk0p2 >$CHARIO/lane
	measure $CHARDISK_NODE
	echo "lane $1 $line"
	echo mmcblk0p2 >$CHARIO/end_lane
}

echo "path scheduler p50 p99 p999 max count"
# Without k2 the lane's wait has no bound but what is queued; it must end.
knob mmcblk0 scheduler none
case_of none
for piece in 0 64 4; do
	use_k2 mmcblk0 1 $piece
	case_of k2-$piece
	expect_at_most "lane beside pieces of $piece KiB" "$max_ns" $((mmcblk_ns * 105 / 100))
done
