#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Reads and writes of several processes keep their data on each disk: with splitting at a fixed size,
# which is counted, and with look-ahead.
. "$STEADY_STOCK/lib.sh"
set -e

for disk in $STEADY_DISKS; do
	name=${disk#/dev/}
	use_k2 "$name" 2 16
	zero "$disk"
	stream "$disk" ios="$STEADY_IOS" || fail "$name: split_kib=16"
	split=$(k2_count "$name" background split)
	expect_at_least "$name: split" "$split" 20
	knob "$name" iosched/split_kib 0
	knob "$name" iosched/inflight_max 32
	knob "$name" iosched/rt_block_us 440
	zero "$disk"
	stream "$disk" ios="$STEADY_IOS" seed=2 || fail "$name: rt_block_us=440"
	k2_expect_settled "$name"
	knob "$name" scheduler none
	echo "$name: data right, $split split"
done
