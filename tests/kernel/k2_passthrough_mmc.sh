#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: MMC commands by ioctl bypass k2, are not counted by it, and get their data under load
# DEVICE: test-plain
. "$STEADY_TESTS/lib.sh"
set -e

pattern passthrough 65536 >"$SCRATCH/wanted"
dd if="$SCRATCH/wanted" of=/dev/mmcblk0 bs=64k seek=128 oflag=direct status=none
use_k2 mmcblk0 1 16
read_it() {
	"$STEADY_TESTS_BIN/passthrough" mmc /dev/mmcblk0 16384 128 >"$SCRATCH/found"
	cmp "$SCRATCH/wanted" "$SCRATCH/found"
}
expect_dispatched "" read_it
expect "inserted" "$(k2_count mmcblk0 background inserted)" 0

"$STEADY_TESTS_BIN/io_stream" /dev/mmcblk0 jobs=3 rt_jobs=1 ios=30 region_kib=1024 largest_kib=128 &
stream=$!
for _ in 1 2 3 4; do
	read_it || fail "next to load"
done
wait $stream
k2_expect_settled mmcblk0
knob mmcblk0 scheduler none
