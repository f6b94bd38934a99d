#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: real-time of mmcblk waits for at most one command of a lane of its level or a lower one
# DEVICE: test-plain
# FLAVOUR: base
# MODULES: chario
# Prints a line per case, times in us: what docs/reference/chario.md shows.
. "$STEADY_TESTS/lib.sh"

# Of the card: a read of 4 KiB, and one of 64 KiB, which is the longest command and piece.
READ_NS=116000
COMMAND_NS=356000

emmc_partition 2048 262144 264192 65536
use_k2 mmcblk0 1 64
echo mmcblk0p2 >$CHARIO/lane || fail "lane"
echo 64 >$CHARIO_KNOBS/command_kib
echo 64 >$CHARIO_KNOBS/bg_kib

# calls CLASS LEVEL KIB: one after the other, until told to stop.
calls() {
	while [ -e /run/going ]; do
		ionice -c "$1" -n "$2" dd if=$CHARDISK_NODE of=/dev/null bs="$3"K 2>/dev/null
	done
}

# blocked LEVEL FIELD: of lane_blocked
blocked() {
	knob mmcblk0 iosched/lane_blocked | awk -v key="rt$1" -v field="$2" '$1 == key { print $field }'
}

# measure CLASS LEVEL KIB BG_THREADS: 4 KiB reads of level 0 through mmcblk, next to calls of a lane
# and readers of 512 KiB through mmcblk.
measure() {
	touch /run/going
	calls "$1" "$2" "$3" &
	sleep 0.01
	before=$(chario_stat read_bytes)
	result=$("$STEADY_TESTS_BIN/rt_reader" /dev/mmcblk0p1 4 200 3000 512 "$4" read)
	lane_bytes=$(($(chario_stat read_bytes) - before))
	rm /run/going
	wait
	echo "$1:$2 $3 $4 $(echo "$result" |
		awk '{ printf "%d %d %d %d %d", $8 / 1000, $6 / 1000, $10 / 1000, $2 / 1000, $12 }')"
	what="level 0 next to class $1 level $2, $3 KiB, $4 readers"
	expect_at_least "bytes of the lane: $what" "$lane_bytes" 1048576
	expect_at_most "$what" "$(echo "$result" | awk '{ print $2 }')" \
		$(((READ_NS + COMMAND_NS) * 102 / 100))
}

echo "lane KiB readers p50 p99 p999 max count"
expect "waits before" "$(blocked 0 3)" 0
for kib in 64 1024 4096; do
	for level in 0 1 2 3 4 5 6 7; do
		measure 1 $level $kib 0
	done
	measure 2 0 $kib 0
done
measure 1 4 1024 2
measure 2 0 1024 2
expect_at_least "waits of level 0" "$(blocked 0 3)" 500
expect_at_most "the longest" "$(blocked 0 5)" $((COMMAND_NS * 102 / 100))
for level in 1 2 3 4 5 6 7; do
	expect "waits of level $level" "$(blocked $level 3)" 0
done
