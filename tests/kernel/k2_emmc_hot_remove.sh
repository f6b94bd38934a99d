#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: an eMMC unbound under load, while k2 holds requests back and with its timer set: all I/O ends, and k2 is removed cleanly, with and without queue
# DEVICE: test-plain
. "$STEADY_TESTS/lib.sh"
set -e

# card_begin INFLIGHT_MAX SPLIT_KIB RT_BLOCK_US
card_begin() {
	emmc_reload capacity_mib=64 queue_depth=$queue
	use_k2 mmcblk0 "$1" "$2"
	knob mmcblk0 iosched/rt_block_us "$3"
}

for queue in 0 8; do
	card_begin $((queue / 4 + 1)) 16 0
	k2_remove_under_load mmcblk0 10 emmc_unbind
	# Look-ahead. Of 220 us a quarter is less than a command takes: so k2 does hold back.
	card_begin $((queue / 4 + 1)) 0 220
	k2_remove_under_load mmcblk0 10 emmc_unbind
	card_begin 1 0 220
	k2_remove_held mmcblk0 emmc_unbind
	card_begin 1 0 220
	k2_remove_timer_left mmcblk0 emmc_unbind
	# The card comes back, and k2 with it.
	emmc_bind
	use_k2 mmcblk0 1 16
	dd if=/dev/mmcblk0 of=/dev/null bs=64k count=4 iflag=direct status=none
	k2_expect_settled mmcblk0
	knob mmcblk0 scheduler none
done
