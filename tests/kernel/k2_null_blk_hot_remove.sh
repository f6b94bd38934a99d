#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a disk powered off under load, while k2 holds requests back and with its timer set: all I/O ends and k2 is removed cleanly
# DEVICE: none
# MODULES: null_blk nr_devices=0
. "$STEADY_TESTS/lib.sh"
set -e

# disk_begin INFLIGHT_MAX SPLIT_KIB RT_BLOCK_US
disk_begin() {
	null_blk_create nullb0 completion_nsec=100000
	use_k2 nullb0 "$1" "$2"
	knob nullb0 iosched/rt_block_us "$3"
}

power_off() {
	echo 0 >"$CONFIGFS/nullb/nullb0/power"
}

for split_kib in 0 4 64; do
	disk_begin 3 $split_kib 0
	k2_remove_under_load nullb0 $((split_kib ? 10 : 0)) power_off
	null_blk_remove nullb0
done
# Look-ahead.
disk_begin 3 0 110
k2_remove_under_load nullb0 10 power_off
null_blk_remove nullb0
for remove in k2_remove_held k2_remove_timer_left; do
	disk_begin 1 0 110
	$remove nullb0 power_off
	null_blk_remove nullb0
done
rmmod k2
insmod "$STEADY_MODULE_K2"
