#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: on an eMMC with occasional errors and time-outs, with or without a queue, data is right.
# DEVICE: test-plain
# KERNELS: 6.1 6.12
# 7.3 itself allocates in the reset of a card while it holds the lock of its completion. lockdep reports
# that: mmc_get_ext_csd() below mmc_blk_mq_complete_prev_req().
. "$STEADY_TESTS/lib.sh"
set -e

# The MMC core tries again, sector by sector for reads; it may give up on an I/O.
for queue in 0 8; do
	emmc_reload capacity_mib=64 queue_depth=$queue \
		fault=read:error:ppm:20000,write:error:ppm:20000,write:timeout:op:300
	use_k2 mmcblk0 $((queue / 2 + 1)) 16
	"$STEADY_TESTS_BIN/io_stream" /dev/mmcblk0 jobs=2 rt_jobs=1 ios=40 region_kib=1024 \
		largest_kib=128 hint_percent=20 errors=1 || fail "queue $queue"
	expect_at_least "injected errors" "$(emmc_stat failed)" 2
	expect_at_least "split" "$(k2_count mmcblk0 background split)" 50
	k2_expect_settled mmcblk0
	knob mmcblk0 scheduler none
done
