#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: real-time p99 next to 128 outstanding 512 KiB is within 5 % of that next to 1
# DEVICE: test-plain
# FLAVOUR: base
. "$STEADY_TESTS/lib.sh"
set -e

# 64 KiB reads, pauses of up to 3 ms, so that they meet the background at any time.
use_k2 mmcblk0 1 4
# measure OP THREADS: prints p99 and maximum
measure() {
	"$STEADY_TESTS_BIN/rt_reader" /dev/mmcblk0 64 400 3000 512 "$2" "$1" |
		awk '{ print $6, $2 }'
}
# From the device's specification: the read itself, and a 4 KiB piece (of a write: and its status).
own_ns=356000
for op in read write; do
	[ $op = read ] && piece_ns=116000 || piece_ns=242000
	measure $op 1 >"$SCRATCH/one"
	measure $op 128 >"$SCRATCH/many"
	read -r p99_ns max_ns <"$SCRATCH/one"
	read -r many_p99_ns many_max_ns <"$SCRATCH/many"
	echo "$op: rt p99 next to 1: $p99_ns ns (max $max_ns)," \
		"next to 128: $many_p99_ns ns (max $many_max_ns)"
	expect_at_most "$op: p99 next to 128" "$many_p99_ns" $((p99_ns * 105 / 100))
	expect_at_most "$op: maximum next to 128" "$many_max_ns" \
		$(((own_ns + piece_ns) * 105 / 100))
done
k2_expect_settled mmcblk0
knob mmcblk0 scheduler none
