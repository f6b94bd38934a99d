#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: an eMMC unbound under load: all I/O ends, and k2 is removed cleanly, with and without queue
# DEVICE: test-plain
. "$STEADY_TESTS/lib.sh"
set -e

for queue in 0 8; do
	emmc_reload capacity_mib=64 queue_depth=$queue
	use_k2 mmcblk0 $((queue / 4 + 1)) 16
	"$STEADY_TESTS_BIN/io_stream" /dev/mmcblk0 jobs=4 rt_jobs=1 ios=100000 region_kib=2048 \
		largest_kib=256 hint_percent=20 errors=2 >"$SCRATCH/streams" &
	streams=$!
	sleep 0.05
	expect_at_least "split before" "$(k2_count mmcblk0 background split)" 10
	emmc_unbind
	wait $streams || fail "$(cat "$SCRATCH/streams")"
	cat "$SCRATCH/streams"
	expect "processes that saw the removal" "$(grep -vc "failed 0" "$SCRATCH/streams")" 4
	expect "module users" "$(cat /sys/module/k2/refcnt)" 0
	emmc_bind
	use_k2 mmcblk0 1 16
	dd if=/dev/mmcblk0 of=/dev/null bs=64k count=4 iflag=direct status=none
	k2_expect_settled mmcblk0
	knob mmcblk0 scheduler none
done
