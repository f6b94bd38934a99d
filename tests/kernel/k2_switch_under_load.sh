#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: scheduler and knobs are switched under load; nothing is lost, stalls or is corrupted
# DEVICE: none
# MODULES: null_blk nr_devices=0
# STOCK: yes
. "$STEADY_TESTS/lib.sh"
set -e

null_blk_create nullb0 completion_nsec=200000
use_k2 nullb0 2 4
io="$STEADY_TESTS_BIN/direct_io"
(
	while [ ! -e "$SCRATCH/stop" ]; do
		"$io" write /dev/nullb0 0 512 65536 4 1 || exit 1
	done
) &
writer=$!
(
	while [ ! -e "$SCRATCH/stop" ]; do
		"$io" write /dev/nullb0 4096 64 4096 8 2 || exit 1
	done
) &
small_writer=$!

for split_kib in 4 0 1; do
	knob nullb0 iosched/split_kib $split_kib
	knob nullb0 iosched/inflight_max $((split_kib % 5 + 1))
	sleep 0.002
	knob nullb0 scheduler none
	knob nullb0 scheduler k2
	knob nullb0 iosched/split_kib $split_kib
	sleep 0.002
	knob nullb0 nr_requests $((split_kib + 4))
	sleep 0.002
	knob nullb0 scheduler mq-deadline
	knob nullb0 scheduler k2
done
touch "$SCRATCH/stop"
wait $writer || fail "writer"
wait $small_writer || fail "small writer"
"$io" verify /dev/nullb0 0 512 524288 1 1
"$io" verify /dev/nullb0 4096 64 65536 1 2

k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
