#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a card that loses power under a busy file system ends all I/O with errors; after a remount all synced data are there
# DEVICE: test-plain
. "$STEADY_TESTS/lib.sh"

emmc_reload capacity_mib=64 cache_kib=512
mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 /dev/mmcblk0 || fail "mkfs"
mkdir /run/mnt
for round in 1 2 3; do
	mount -t ext4 /dev/mmcblk0 /run/mnt || fail "mount, round $round"
	pattern "round$round" 300000 >/run/wanted
	cp /run/wanted /run/mnt/synced
	sync
	dd if=/dev/zero of=/run/mnt/busy bs=64k count=200 conv=fsync 2>/run/dd &
	sleep 0.0$((round * 3))
	emmc_power_cut
	wait $! && fail "round $round: fsync succeeded on a dead card"
	umount /run/mnt || fail "umount, round $round"
	emmc_unbind
	emmc_bind
	mount -t ext4 /dev/mmcblk0 /run/mnt || fail "mount after round $round"
	cmp /run/wanted /run/mnt/synced || fail "content, round $round"
	umount /run/mnt || fail "umount after round $round"
done
