#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: every size and start around split_kib and max_sectors, for blocks of 512 and 4096, is cut right
# DEVICE: none
# MODULES: null_blk nr_devices=0
# STOCK: yes
. "$STEADY_TESTS/lib.sh"
set -e

# The driver's largest request is 32 KiB, a piece 16 KiB. expected: for each line "START SECTORS", the
# pieces of each request that the block layer makes of it.
expected() {
	awk '{
		at = $1
		for (left = $2; left > 0; left -= request) {
			request = left < 64 ? left : 64
			for (end = at + request; at < end; at += piece) {
				piece = end - at < 32 ? end - at : 32
				printf "R %d %d 9\n", at, piece * 512
			}
		}
	}'
}

read_all() {
	while read -r start sectors; do
		"$STEADY_TESTS_BIN/one_io" sync read /dev/nullb0 $((start * 512)) $((sectors * 512))
	done <"$SCRATCH/places"
}

for block in 512 4096; do
	null_blk_create nullb0 completion_nsec=10000 blocksize=$block max_sectors=64
	expect "max_sectors_kb" "$(knob nullb0 max_sectors_kb)" 32
	use_k2 nullb0 1 16
	step=$((block / 512))
	last=$((64 * 2048 - step))
	{
		for start in 0 $step $((64 - step)); do
			for middle in 32 64 96 128; do
				printf "$start %d\n" $((middle - step)) $middle $((middle + step))
			done
		done
		# The smallest there is, and the device's last block.
		printf "%d %d\n" 0 $step $last $step $((last - 64)) $((64 + step))
	} >"$SCRATCH/places"
	expected <"$SCRATCH/places" >"$SCRATCH/expected"
	dispatched read_all >"$SCRATCH/pieces"
	cmp "$SCRATCH/pieces" "$SCRATCH/expected" ||
		fail "blocks of $block: $(diff "$SCRATCH/pieces" "$SCRATCH/expected" | head -5)"
	awk '{ print "result", $2 * 512 }' "$SCRATCH/places" |
		cmp - "$SCRATCH/dispatched.out" || fail "blocks of $block: short reads"
	k2_expect_settled nullb0
	knob nullb0 scheduler none
	null_blk_remove nullb0
done
