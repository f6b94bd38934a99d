#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: next to background callers a real-time call waits for one command of bg_kib, as with k2
# DEVICE: test-plain
# FLAVOUR: base
# MODULES: chario
# Prints a line per case, times in us: what docs/reference/chario.md shows.
. "$STEADY_TESTS/lib.sh"
set -e

READS=1000
disk=${STEADY_DEVICE#/dev/}

# measure NODE RT_KIB BG_KIB BG_THREADS OP: sets max_ns and line
measure() {
	node=$1
	shift
	# Nothing but the arguments decides the times.
	result=$("$STEADY_TESTS_BIN/rt_reader" "$node" "$1" $READS 3000 "$2" "$3" "$4")
	max_ns=$(echo "$result" | awk '{ print $2 }')
	line=$(echo "$result" | awk '{ printf "%d %d %d %d %d %d", $8 / 1000, $6 / 1000, $10 / 1000, $2 / 1000, $12, $4 }')
}

# bound RT_KIB BG_KIB OP: on this card, with 5 % for the time between two commands.
bound_ns() {
	if [ "$3" = read ]; then
		echo $((((100000 + 4000 * $1) + (100000 + 4000 * $2)) * 105 / 100))
	else
		echo $((((100000 + 4000 * $1) + (200000 + 8000 * $2 + 10000)) * 105 / 100))
	fi
}

echo "path rt_kib piece_kib bg p50 p99 p999 max count bg_count bound"
for piece in 4 64; do
	for rt_kib in 4 64; do
		for load in "512 1 read" "512 16 read" "4 64 read" "512 4 write"; do
			# shellcheck disable=SC2086 # Three words.
			set -- $load
			limit_ns=$(bound_ns $rt_kib $piece "$3")
			use_k2 "$disk" 1 $piece
			measure "$STEADY_DEVICE" $rt_kib "$1" "$2" "$3"
			k2_ns=$max_ns
			echo "k2 $rt_kib $piece $2x$1K-$3 $line $((limit_ns / 1000))"
			knob "$disk" scheduler none
			chario_take
			echo $piece >$CHARIO_KNOBS/bg_kib
			measure $CHARDISK_NODE $rt_kib "$1" "$2" "$3"
			echo "chardisk $rt_kib $piece $2x$1K-$3 $line $((limit_ns / 1000))"
			expect_at_most "chardisk beside $load" "$max_ns" "$limit_ns"
			expect_at_most "k2 beside $load" "$k2_ns" "$limit_ns"
			expect_at_least "background of $load" "${line##* }" $((READS / 100))
			chario_give
		done
	done
done

# Without pieces the wait is that of a whole command: the knob is what bounds it.
chario_take
echo 4096 >$CHARIO_KNOBS/bg_kib
measure $CHARDISK_NODE 4 512 1 read
echo "chardisk 4 512 1x512K-read $line"
expect_at_least "with commands of 512 KiB" "$max_ns" $((2 * $(bound_ns 4 64 read)))
chario_give
