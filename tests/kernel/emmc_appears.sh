#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: the kernel's MMC stack brings the emulated card up in HS400 with the spec's properties
# DEVICE: foresee-ncemad9d-usb
. "$STEADY_TESTS/lib.sh"

queue=/sys/block/mmcblk0/queue
expect "name" "$(cat /sys/block/mmcblk0/device/name)" NCEMAD
expect "sectors" "$(cat /sys/block/mmcblk0/size)" $((61035 * 2048))
expect "write cache" "$(cat $queue/write_cache)" "write through"
expect "FUA" "$(cat $queue/fua)" 0
expect "command queue" "$(cat /sys/block/mmcblk0/device/cmdq_en)" 0
expect "largest request, KiB" "$(cat $queue/max_hw_sectors_kb)" 512
expect "tags" "$(sed -n 's/^nr_tags=//p' /sys/kernel/debug/block/mmcblk0/hctx0/tags)" 64
dmesg | grep -q "new HS400 MMC card" || fail "not in HS400"

# 64 GB cost nothing until written: the last sectors can be read in a guest of 1 GiB.
dd if=/dev/mmcblk0 bs=1M skip=61034 iflag=direct 2>/dev/null | tr -d '\0' | wc -c >/run/nonzero
expect "bytes that are not zero" "$(cat /run/nonzero)" 0
