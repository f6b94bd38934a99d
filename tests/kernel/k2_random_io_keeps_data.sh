#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: random reads and writes of all sizes by several processes, merged and split, keep their data
# DEVICE: none
# MODULES: null_blk nr_devices=0
# STOCK: yes
. "$STEADY_TESTS/lib.sh"
set -e

# Pieces that divide the I/Os and pieces that don't; small and large bounds; blocks of 512 and 4096.
round=0
for setting in "1 4 512" "3 7 512" "8 64 512" "2 4 4096"; do
	# shellcheck disable=SC2086 # three words
	set -- $setting
	round=$((round + 1))
	null_blk_create nullb0 completion_nsec=20000 blocksize="$3"
	use_k2 nullb0 "$1" "$2"
	"$STEADY_TESTS_BIN/io_stream" /dev/nullb0 seed=$round jobs=4 rt_jobs=1 ios=60 largest_kib=160 \
		block_bytes="$3" region_kib=2048 hint_percent=20 sync_percent=5 ||
		fail "inflight_max $1 split_kib $2 block $3"
	expect_at_least "split" "$(k2_count nullb0 background split)" 40
	k2_expect_settled nullb0
	knob nullb0 scheduler none
	null_blk_remove nullb0
done
