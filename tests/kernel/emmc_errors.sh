#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: injected errors and time-outs reach user space as EIO, and the card keeps working
# DEVICE: test-plain
. "$STEADY_TESTS/lib.sh"

works() {
	pattern works 8192 >/run/wanted
	dd if=/run/wanted of=/dev/mmcblk0 bs=4096 oflag=direct 2>/dev/null || fail "write elsewhere"
	dd if=/dev/mmcblk0 of=/run/found bs=4096 count=2 iflag=direct 2>/dev/null || fail "read elsewhere"
	cmp /run/wanted /run/found || fail "content elsewhere"
}

for queue in 0 8; do
	emmc_reload capacity_mib=16 queue_depth=$queue \
		fault=read:error:sectors:2048-2049,write:error:sectors:4096-4099,read:timeout:sectors:6144-6144
	works
	fails read "Input/output error" dd if=/dev/mmcblk0 of=/dev/null bs=4096 skip=256 count=1 iflag=direct
	fails write "Input/output error" dd if=/dev/zero of=/dev/mmcblk0 bs=4096 seek=512 count=1 oflag=direct
	[ "$(emmc_stat failed)" -ge 2 ] || fail "errors were not counted"
	works
	fails time-out "Input/output error" dd if=/dev/mmcblk0 of=/dev/null bs=512 skip=6144 count=1 iflag=direct
	[ "$(emmc_stat silent)" -ge 1 ] || fail "time-out was not counted"
	works
	# Only the sectors that are named fail.
	dd if=/dev/mmcblk0 of=/dev/null bs=512 skip=2050 count=6 iflag=direct 2>/dev/null ||
		fail "neighbours of a bad sector, queue $queue"
done

# The MMC core's retries recover from a transient error, so only the count shows it.
emmc_reload capacity_mib=16 fault=write:error:op:1,write:timeout:op:3
works
expect "failed" "$(emmc_stat failed)" 1

# A flush that fails is an error of fsync.
emmc_reload capacity_mib=16 cache_kib=64 fault=flush:error:ppm:1000000
fails fsync "Input/output error" dd if=/dev/zero of=/dev/mmcblk0 bs=4096 count=1 conv=fsync
