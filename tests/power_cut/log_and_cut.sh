#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# For test_cut_card.py: a file system on a card in the file card.img, logged, and a power cut with
# something in the cache. $1: depth of the card's queue. Prints how much the cut lost, in KiB.
# shellcheck source=../kernel/lib.sh
. "$STEADY_TESTS/lib.sh"

# A file has no discard: mkfs must not expect one.
insmod "$STEADY_MODULE_STEADY_EMMC" capacity_mib=32 cache_kib=256 queue_depth="$1" \
	path="$PWD/card.img" write_log="$PWD/card.log" || fail "insmod"
emmc_wait
mkfs.ext4 -q -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 "$EMMC_NODE" || fail "mkfs"
mkdir /run/mnt
mount -t ext4 "$EMMC_NODE" /run/mnt || fail "mount"
pattern kept 300000 >/run/mnt/kept
sync
dd if=/run/mnt/kept of=/run/mnt/durable bs=8192 oflag=direct,dsync 2>/dev/null || fail "dsync"
dd if=/run/mnt/kept of=/run/mnt/cached bs=8192 count=8 oflag=direct 2>/dev/null || fail "direct"
emmc_power_cut
umount -f /run/mnt 2>/dev/null
emmc_unbind
emmc_stat lost_kib
