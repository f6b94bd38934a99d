#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: next to large or many background requests, real-time waits for one piece at most
# DEVICE: test-plain
. "$STEADY_TESTS/lib.sh"
set -e

disk=${STEADY_DEVICE#/dev/}
reader="$STEADY_TESTS_BIN/rt_reader"
# No command queue: the default is what this test needs.
knob "$disk" scheduler k2
knob "$disk" iosched/rt_block_us 0
expect "default inflight_max" "$(knob "$disk" iosched/inflight_max)" 1

# max_ns BG_KIB BG_THREADS OP: the reader's longest wait, 64 KiB reads
max_ns() {
	"$reader" "$STEADY_DEVICE" 64 40 3000 "$1" "$2" "$3" | awk '{ print $2 }'
}

alone_ns=$(max_ns 4 0 read)
knob "$disk" iosched/split_kib 0
unsplit_ns=$(max_ns 512 1 read)
knob "$disk" iosched/split_kib 4
split_ns=$(max_ns 512 1 read)
many_large_ns=$(max_ns 512 16 read)
many_small_ns=$(max_ns 4 128 read)
knob "$disk" iosched/split_kib 0
many_small_unsplit_ns=$(max_ns 4 128 read)
echo "alone $alone_ns unsplit $unsplit_ns split $split_ns 16x512K $many_large_ns" \
	"128x4K $many_small_ns unsplit 128x4K $many_small_unsplit_ns"

piece_ns=$("$reader" "$STEADY_DEVICE" 4 40 3000 4 0 read | awk '{ print $2 }')
# 5 % for what happens between the piece's end and the next dispatch.
bound_ns=$(((alone_ns + piece_ns) * 105 / 100))
expect_at_most "real-time next to 512 KiB in pieces" "$split_ns" "$bound_ns"
expect_at_most "real-time next to 16 x 512 KiB in pieces" "$many_large_ns" "$bound_ns"
expect_at_most "real-time next to 128 x 4 KiB, splitting" "$many_small_ns" "$bound_ns"
expect_at_most "real-time next to 128 x 4 KiB" "$many_small_unsplit_ns" "$bound_ns"
expect_at_least "real-time next to 512 KiB unsplit" "$unsplit_ns" "$((2 * bound_ns))"

k2_expect_settled "$disk"
knob "$disk" scheduler none
