#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: requests with integrity data (DIF and DIX type 1) pass unsplit, and the guards agree
# DEVICE: none
# MODULES: sd_mod; scsi_debug dev_size_mb=16 ndelay=20000 dif=1 dix=1
. "$STEADY_TESTS/lib.sh"
set -e

disk=$(scsi_disk)
expect "integrity" "$(cat "/sys/block/$disk/integrity/format")" T10-DIF-TYPE1-CRC
use_k2 "$disk" 2 4
"$STEADY_TESTS_BIN/io_stream" "/dev/$disk" jobs=2 rt_jobs=1 ios=60 region_kib=2048 largest_kib=256 \
	hint_percent=20
expect "split with integrity" "$(k2_count "$disk" background split)" 0
k2_expect_settled "$disk"

# Once nobody generates or verifies, there is no integrity data, and requests are split.
echo 0 >"/sys/block/$disk/integrity/write_generate"
echo 0 >"/sys/block/$disk/integrity/read_verify"
dd if="/dev/$disk" of=/dev/null bs=64k count=1 iflag=direct status=none
expect "split without integrity" "$(k2_count "$disk" background split)" 15
k2_expect_settled "$disk"
knob "$disk" scheduler none
