#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: discard and write-zeroes pass whole and do their work, between split writes
# DEVICE: test-plain
# MODULES: null_blk nr_devices=0; sd_mod; scsi_debug dev_size_mb=16 lbpws=1 lbpu=1 lbprz=1 ndelay=20000
. "$STEADY_TESTS/lib.sh"
set -e

disk=$(scsi_disk)
null_blk_create nullb0 completion_nsec=20000 discard=1

# zeroed DISK OPTION...: blkdiscard of 512 KiB in a patterned MiB leaves zeroes there, and only there.
pattern discard 1048576 >"$SCRATCH/pattern"
{
	head -c 262144 "$SCRATCH/pattern"
	head -c 524288 /dev/zero
	tail -c 262144 "$SCRATCH/pattern"
} >"$SCRATCH/wanted"
zeroed() {
	name=$1
	shift
	"$STEADY_TESTS_BIN/io_stream" "/dev/$name" jobs=1 ios=15 region_kib=1024 \
		largest_kib=64 &
	stream=$!
	dd if="$SCRATCH/pattern" of="/dev/$name" bs=1M seek=8 oflag=direct status=none
	before=$(k2_count "$name" background dispatched)
	blkdiscard "$@" --offset 8650752 --length 524288 "/dev/$name" || fail "$name: blkdiscard $*"
	wait $stream
	expect_at_least "dispatched" "$(k2_count "$name" background dispatched)" $((before + 1))
	dd if="/dev/$name" bs=1M skip=8 count=1 iflag=direct status=none | cmp - "$SCRATCH/wanted" ||
		fail "$name: after blkdiscard $*"
	dd if=/dev/zero of="/dev/$name" bs=1M count=1 oflag=direct status=none
}

for name in "$disk" nullb0 mmcblk0; do
	use_k2 "$name" 1 4
	zeroed "$name"
	[ "$(knob "$name" write_zeroes_max_bytes)" -eq 0 ] || zeroed "$name" --zeroout
	k2_expect_settled "$name"
	knob "$name" scheduler none
done
null_blk_remove nullb0
