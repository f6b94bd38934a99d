#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: two disks with k2, and two that share one driver's tags, do not disturb each other
# DEVICE: test-plain
# MODULES: null_blk nr_devices=0 shared_tags=1 hw_queue_depth=4
. "$STEADY_TESTS/lib.sh"
set -e

null_blk_create nullb0 completion_nsec=50000
null_blk_create nullb1 completion_nsec=50000
use_k2 nullb0 3 4
use_k2 nullb1 1 64
use_k2 mmcblk0 1 16
expect "module users" "$(cat /sys/module/k2/refcnt)" 3
streams=
for disk in nullb0 nullb1 mmcblk0; do
	"$STEADY_TESTS_BIN/io_stream" /dev/$disk jobs=2 rt_jobs=1 ios=50 region_kib=1024 \
		largest_kib=128 hint_percent=20 &
	streams="$streams $!"
done
for stream in $streams; do
	wait "$stream" || fail "a stream"
done
expect "split_kib of the second" "$(knob nullb1 iosched/split_kib)" 64
for disk in nullb0 nullb1 mmcblk0; do
	k2_expect_settled $disk
	expect_at_least "$disk: split" "$(k2_count $disk background split)" 5
done
# The others continue when one is removed.
knob nullb0 scheduler none
expect "module users" "$(cat /sys/module/k2/refcnt)" 2
dd if=/dev/nullb1 of=/dev/null bs=128k count=2 iflag=direct status=none
k2_expect_settled nullb1
knob nullb1 scheduler none
knob mmcblk0 scheduler none
null_blk_remove nullb0
null_blk_remove nullb1
