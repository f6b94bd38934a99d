#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a SCSI disk deleted under load, while k2 holds requests back and with its timer set: all I/O ends, k2 is removed cleanly and can be unloaded
# DEVICE: none
# MODULES: sd_mod; scsi_debug dev_size_mb=16 ndelay=100000 max_queue=4
. "$STEADY_TESTS/lib.sh"
set -e

# disk_begin INFLIGHT_MAX SPLIT_KIB RT_BLOCK_US: again, and empty
disk_begin() {
	echo "- - -" | tee /sys/class/scsi_host/host*/scan >/dev/null
	disk=$(scsi_disk)
	dd if=/dev/zero of="/dev/$disk" bs=1M count=8 oflag=direct status=none
	use_k2 "$disk" "$1" "$2"
	knob "$disk" iosched/rt_block_us "$3"
}

delete() {
	echo 1 >"/sys/block/$disk/device/delete"
	[ ! -e "/sys/block/$disk" ] || fail "$disk is still there"
}

disk_begin 3 4 0
k2_remove_under_load "$disk" 20 delete
# Look-ahead.
disk_begin 3 0 110
k2_remove_under_load "$disk" 20 delete
for remove in k2_remove_held k2_remove_timer_left; do
	disk_begin 1 0 110
	$remove "$disk" delete
done

rmmod k2
insmod "$STEADY_MODULE_K2"
# The disk comes back, and k2 with it.
disk_begin 1 4 0
dd if="/dev/$disk" of=/dev/null bs=64k count=4 iflag=direct status=none
k2_expect_settled "$disk"
knob "$disk" scheduler none
