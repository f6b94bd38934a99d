#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: SCSI commands that are aborted, busy, cut short or recovered are sent again; data is right
# DEVICE: none
# MODULES: sd_mod; scsi_debug dev_size_mb=16 ndelay=20000
# COMPAT: insert_flags.h
. "$STEADY_TESTS/lib.sh"
set -e

disk=$(scsi_disk)
use_k2 "$disk" 2 8
# Every 7th command: recovered error and aborted command (8 + 16), short transfer (0x100), host busy
# (0x8000), aborted by the initiator (0x10000).
for opts in 0x18 0x100 0x8000 0x10000; do
	echo $opts >/sys/bus/pseudo/drivers/scsi_debug/opts
	echo 7 >/sys/bus/pseudo/drivers/scsi_debug/every_nth
	"$STEADY_TESTS_BIN/io_stream" "/dev/$disk" jobs=2 rt_jobs=1 ios=40 region_kib=1024 \
		largest_kib=128 hint_percent=20 || fail "opts $opts"
	echo 0 >/sys/bus/pseudo/drivers/scsi_debug/every_nth
	blkdiscard --zeroout "/dev/$disk"
done

k2_expect_settled "$disk"
knob "$disk" scheduler none
