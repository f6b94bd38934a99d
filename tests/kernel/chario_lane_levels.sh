#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: real-time of mmcblk waits for at most one command of a lane of lower levels
# DEVICE: test-plain
# FLAVOUR: base
# MODULES: chario
# Prints a line per case, times in us: what docs/reference/chario.md shows.
. "$STEADY_TESTS/lib.sh"

# Of the card: a read of 4 KiB, and one command of a lane of 64 KiB.
READ_NS=116000
COMMAND_NS=356000

emmc_partition 2048 262144 264192 65536
use_k2 mmcblk0 1 64
echo mmcblk0p2 >$CHARIO/lane || fail "lane"
echo 64 >$CHARIO_KNOBS/command_kib
echo 64 >$CHARIO_KNOBS/bg_kib

# call CLASS LEVEL KIB: calls of a lane, one after the other, until told to stop.
calls() {
	while [ -e /run/going ]; do
		ionice -c "$1" -n "$2" dd if=$CHARDISK_NODE of=/dev/null bs="$3"K 2>/dev/null
	done
}

echo "lane KiB p50 p99 p999 max count"
# measure CLASS LEVEL KIB
measure() {
	touch /run/going
	calls "$@" &
	sleep 0.01
	result=$("$STEADY_TESTS_BIN/rt_reader" /dev/mmcblk0p1 4 200 3000 4 0 read)
	before=$(chario_stat read_bytes)
	sleep 0.05
	expect_at_least "bytes of the lane beside it" "$(($(chario_stat read_bytes) - before))" 65536
	rm /run/going
	wait
	echo "$1:$2 $3 $(echo "$result" | awk '{ printf "%d %d %d %d %d", $8 / 1000, $6 / 1000, $10 / 1000, $2 / 1000, $12 }')"
	max_ns=$(echo "$result" | awk '{ print $2 }')
	expect_at_most "level 0 beside class $1 level $2, $3 KiB" "$max_ns" \
		$(((READ_NS + COMMAND_NS) * 105 / 100))
}

for kib in 64 1024 4096; do
	for level in 1 2 3 4 5 6 7; do
		measure 1 $level $kib
	done
	measure 2 0 $kib
done
cat /sys/block/mmcblk0/queue/iosched/lane_blocked
