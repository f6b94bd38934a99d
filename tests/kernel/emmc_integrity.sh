#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: what is written is read back, at odd sizes and offsets, with and without command queue
# DEVICE: test-plain
. "$STEADY_TESTS/lib.sh"

# check_all BYTES...: sizes to write and read back
check_all() {
	for bytes in "$@"; do
		sector=$((bytes * 3 / 512 + 7))
		pattern "$bytes" "$bytes" >/run/wanted
		dd if=/run/wanted of=/dev/mmcblk0 bs=512 seek=$sector conv=fsync 2>/dev/null ||
			fail "write of $bytes"
		echo 1 >/proc/sys/vm/drop_caches
		dd if=/dev/mmcblk0 of=/run/found bs=512 skip=$sector count=$((bytes / 512)) 2>/dev/null ||
			fail "read of $bytes"
		cmp /run/wanted /run/found || fail "$bytes bytes at sector $sector"
	done
	# One command per block instead of merged ones, overlapping what is there.
	pattern direct 49152 >/run/wanted
	dd if=/run/wanted of=/dev/mmcblk0 bs=1536 seek=11 oflag=direct 2>/dev/null
	dd if=/dev/mmcblk0 of=/run/found bs=512 skip=33 count=96 iflag=direct 2>/dev/null
	cmp /run/wanted /run/found || fail "direct"
	# Zeroing goes to the card as a trim.
	erases=$(emmc_stat erases)
	blkdiscard --zeroout --offset $((40 * 512)) --length 16384 /dev/mmcblk0 || fail "zeroout"
	[ "$(emmc_stat erases)" -gt "$erases" ] || fail "zeroout did not reach the card as an erase"
	head -c 16384 /dev/zero | dd of=/run/wanted bs=512 seek=7 conv=notrunc 2>/dev/null
	dd if=/dev/mmcblk0 of=/run/found bs=512 skip=33 count=96 iflag=direct 2>/dev/null
	cmp /run/wanted /run/found || fail "after zeroout"
	blkdiscard /dev/mmcblk0 || fail "discard"
}

check_all 512 4096 6656 65536 524288 786432
emmc_reload capacity_mib=64 cache_kib=256
check_all 6656 529920
emmc_reload capacity_mib=64 queue_depth=8 units=4 cache_kib=64
check_all 6656 529920
expect "failed" "$(emmc_stat failed)" 0
