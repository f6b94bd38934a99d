#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a card kept in a file holds a file system through module unload and load
# DEVICE: test-file
# ALONE: the card's file has a fixed place in the work folder
. "$STEADY_TESTS/lib.sh"

file=/run/steadyio/work/card.img
# shellcheck disable=SC2086
params="capacity_mib=64 cache_kib=512 path=$file"
mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 /dev/mmcblk0 || fail "mkfs"
mkdir /run/mnt
mount -t ext4 /dev/mmcblk0 /run/mnt || fail "mount"
pattern file 1500000 >/run/wanted
cp /run/wanted /run/mnt/kept
umount /run/mnt || fail "umount"
[ -s "$file" ] || fail "$file is empty"

for round in 1 2; do
	# shellcheck disable=SC2086
	emmc_reload $params
	e2fsck -fn /dev/mmcblk0 >/run/fsck || fail "e2fsck, round $round: $(cat /run/fsck)"
	mount -t ext4 /dev/mmcblk0 /run/mnt || fail "mount, round $round"
	cmp /run/wanted /run/mnt/kept || fail "content, round $round"
	umount /run/mnt
done
