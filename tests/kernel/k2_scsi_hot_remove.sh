#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a SCSI disk deleted under load: all I/O ends, k2 is removed cleanly and can be unloaded
# DEVICE: none
# MODULES: sd_mod; scsi_debug dev_size_mb=16 ndelay=100000 max_queue=4
. "$STEADY_TESTS/lib.sh"
set -e

disk=$(scsi_disk)
use_k2 "$disk" 3 4
"$STEADY_TESTS_BIN/io_stream" "/dev/$disk" jobs=4 rt_jobs=1 ios=100000 region_kib=2048 \
	largest_kib=256 hint_percent=20 errors=2 >"$SCRATCH/streams" &
streams=$!
sleep 0.05
expect_at_least "split before" "$(k2_count "$disk" background split)" 20
echo 1 >"/sys/block/$disk/device/delete"
[ ! -e "/sys/block/$disk" ] || fail "$disk is still there"
wait $streams || fail "$(cat "$SCRATCH/streams")"
cat "$SCRATCH/streams"
expect "processes that saw the removal" "$(grep -vc "failed 0" "$SCRATCH/streams")" 4

expect "module users" "$(cat /sys/module/k2/refcnt)" 0
rmmod k2
insmod "$STEADY_MODULE_K2"
# The disk comes back, and k2 with it.
echo "- - -" | tee /sys/class/scsi_host/host*/scan >/dev/null
disk=$(scsi_disk)
use_k2 "$disk" 1 4
dd if="/dev/$disk" of=/dev/null bs=64k count=4 iflag=direct status=none
k2_expect_settled "$disk"
knob "$disk" scheduler none
