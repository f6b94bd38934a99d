#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: background_wait_ms_max bounds background's wait; real-time pays one piece per wait
# DEVICE: test-plain
. "$STEADY_TESTS/lib.sh"
set -e

disk=${STEADY_DEVICE#/dev/}
reader="$STEADY_TESTS_BIN/rt_reader"

# test-plain reads 64 KiB in 356 us, 4 KiB in 116 us, 512 KiB in 2148 us.
reads=300
rt_us=356
slack_us=20

# next_to_background SPLIT_KIB WAIT_MS BACKGROUND: two real-time readers, back to back, so that one
# is always queued, next to BACKGROUND (0 or 1) readers of 512 KiB. Sets what was seen during the
# reads of one of the former: its longest in rt_max_us, background's longest wait in wait_max_us,
# and how often background was let through in forced.
next_to_background() {
	use_k2 "$disk" 1 "$1"
	knob "$disk" iosched/background_wait_ms_max "$2"
	ionice -c 1 -n 0 dd if="$STEADY_DEVICE" of=/dev/null bs=64k iflag=direct status=none &
	others=$!
	if [ "$3" = 1 ]; then
		ionice -c 3 dd if="$STEADY_DEVICE" of=/dev/null bs=512k iflag=direct status=none &
		others="$others $!"
	fi
	rt_max_us=$(($("$reader" "$STEADY_DEVICE" 64 "$reads" 0 4 0 read | awk '{ print $2 }') / 1000))
	forced=$(k2_count "$disk" background forced)
	wait_max_us=$(($(k2_count "$disk" background wait_ns_max) / 1000))
	# shellcheck disable=SC2086 # One process each.
	kill $others
	wait
	k2_expect_settled "$disk"
	echo "split_kib $1 background_wait_ms_max $2 background $3:" \
		"rt max $rt_max_us us, background forced $forced, waited $wait_max_us us"
	# Counters and longest waits begin at 0.
	knob "$disk" scheduler none
}

next_to_background 4 0 0
alone_us=$rt_max_us

next_to_background 4 0 1
expect "forced, off" "$forced" 0
expect_at_least "background's wait, off" "$wait_max_us" "$((reads * 2 * rt_us - slack_us))"
# The first read may find a piece in the device.
expect_at_most "real-time, off" "$rt_max_us" "$((alone_us + 116 + slack_us))"

# Background gets 4 KiB in each 10 ms. No real-time read waits for more than one of them.
next_to_background 4 10 1
expect_at_most "background's wait, 10 ms" "$wait_max_us" "$((10000 + rt_us + slack_us))"
expect_at_least "forced, 10 ms" "$forced" "$((reads * 2 * rt_us / (10000 + rt_us + 116) - 1))"
expect_at_most "forced, 10 ms" "$forced" "$((reads * 2 * rt_us / 10000 + 2))"
expect_at_most "real-time, 10 ms" "$rt_max_us" "$((alone_us + 116 + slack_us))"

# A piece that takes longer than the wait: still one per real-time read, never two in a row.
next_to_background 0 1 1
expect_at_most "background's wait, 1 ms unsplit" "$wait_max_us" "$((1000 + rt_us + slack_us))"
expect_at_least "forced, 1 ms unsplit" "$forced" 20
expect_at_most "real-time, 1 ms unsplit" "$rt_max_us" "$((alone_us + 2148 + slack_us))"
