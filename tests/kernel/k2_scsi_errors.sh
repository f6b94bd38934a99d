#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: SCSI pieces end with medium errors: their I/Os fail, all others are right, none is lost
# DEVICE: none
# MODULES: sd_mod; scsi_debug dev_size_mb=16 ndelay=20000 opts=2 medium_error_start=2985 medium_error_count=100
. "$STEADY_TESTS/lib.sh"
set -e

disk=$(scsi_disk)
use_k2 "$disk" 2 8
# A read over the bad sectors 2985 to 3084 fails at the piece with the first of them.
if dd if="/dev/$disk" of=/dev/null bs=512k count=1 skip=2 iflag=direct status=none 2>"$SCRATCH/error"; then
	fail "a read of bad sectors succeeded"
fi
grep -q "No data available" "$SCRATCH/error" || fail "unexpected: $(cat "$SCRATCH/error")"
k2_expect_settled "$disk"
"$STEADY_TESTS_BIN/io_stream" "/dev/$disk" jobs=2 rt_jobs=1 ios=120 region_kib=1024 \
	largest_kib=256 write_percent=30 hint_percent=20 errors=1 >"$SCRATCH/streams" || fail "$(cat "$SCRATCH/streams")"
cat "$SCRATCH/streams"
expect_at_least "failed I/Os" "$(stream_sum failed "$SCRATCH/streams")" 5

k2_expect_settled "$disk"
expect "in flight in the statistics" "$(awk '{ print $9 }' "/sys/block/$disk/stat")" 0
knob "$disk" scheduler none
