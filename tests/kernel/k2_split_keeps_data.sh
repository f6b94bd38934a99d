#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: data written and read in pieces is the data, for all sizes and after knob changes
# DEVICE: none
# MODULES: null_blk nr_devices=0
# COMPAT: bio_split.h
# STOCK: yes
. "$STEADY_TESTS/lib.sh"
set -e

null_blk_create nullb0 completion_nsec=10000
use_k2 nullb0 1 4
io="$STEADY_TESTS_BIN/direct_io"

# Block sizes and pieces that do and do not divide each other, and start off a piece's boundary.
seed=1
for block in 3584 4608 65536 1048576; do
	for split_kib in 1 7 64; do
		knob nullb0 iosched/split_kib $split_kib
		seed=$((seed + 1))
		"$io" write /dev/nullb0 3 256 $block 2 $seed || fail "write $block/$split_kib"
		"$io" verify /dev/nullb0 3 256 65536 2 $seed || fail "in pieces $block/$split_kib"
		knob nullb0 iosched/split_kib 0
		"$io" verify /dev/nullb0 3 256 524288 1 $seed || fail "unsplit $block/$split_kib"
	done
done

k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
