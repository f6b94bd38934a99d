#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: with a command queue, several pieces are in flight and the data is right
# DEVICE: test-queue
. "$STEADY_TESTS/lib.sh"
set -e

disk=${STEADY_DEVICE#/dev/}
knob "$disk" scheduler k2
expect_at_least "default inflight_max" "$(knob "$disk" iosched/inflight_max)" 2
knob "$disk" iosched/split_kib 4
io="$STEADY_TESTS_BIN/direct_io"

"$io" write "$STEADY_DEVICE" 5 1024 200704 3 1
"$io" verify "$STEADY_DEVICE" 5 1024 65536 3 1
knob "$disk" iosched/split_kib 0
"$io" verify "$STEADY_DEVICE" 5 1024 524288 1 1

expect_at_least "pieces in flight at a time" \
	"$(awk '$1 == "inflight_max" { print $2 }' /sys/kernel/debug/steady_emmc/stats)" 2
k2_expect_settled "$disk"
knob "$disk" scheduler none
