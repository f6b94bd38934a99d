#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: SCSI commands by SG_IO bypass k2, are not counted by it, and get their data under load
# DEVICE: none
# MODULES: sd_mod; sg; scsi_debug dev_size_mb=16 ndelay=50000
# COMPAT: insert_flags.h
. "$STEADY_TESTS/lib.sh"
set -e

disk=$(scsi_disk)
pattern passthrough 65536 >"$SCRATCH/wanted"
dd if="$SCRATCH/wanted" of="/dev/$disk" bs=64k seek=128 oflag=direct status=none
use_k2 "$disk" 1 4
read_it() {
	"$STEADY_TESTS_BIN/passthrough" scsi "$1" 16384 128 >"$SCRATCH/found"
	cmp "$SCRATCH/wanted" "$SCRATCH/found"
}
expect_dispatched "" read_it "/dev/$disk"
expect_dispatched "" read_it /dev/sg0
expect "inserted" "$(k2_count "$disk" background inserted)" 0

"$STEADY_TESTS_BIN/io_stream" "/dev/$disk" jobs=3 rt_jobs=1 ios=40 region_kib=1024 largest_kib=128 &
stream=$!
for node in "$disk" sg0 "$disk" sg0; do
	read_it "/dev/$node" || fail "next to load, by $node"
done
wait $stream
k2_expect_settled "$disk"
knob "$disk" scheduler none
