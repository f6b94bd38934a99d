#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Makes a file system on the card, mounts it with $POWER_CUT_OPTIONS, and runs $POWER_CUT_RECORD in
# it; the card's log is what gets cut.
# shellcheck source=../kernel/lib.sh
. "$STEADY_TESTS/lib.sh"

mkfs.ext4 -q -U 6d7c1f3a-0000-4000-8000-000000000001 -J size=4 \
	-E lazy_itable_init=0,lazy_journal_init=0,hash_seed=6d7c1f3a-0000-4000-8000-000000000002 \
	"$STEADY_DEVICE" || fail "mkfs"
mkdir /run/mnt
mount -t ext4 -o "$POWER_CUT_OPTIONS" "$STEADY_DEVICE" /run/mnt || fail "mount"
mkdir /run/mnt/kept
sync
sh -c "$POWER_CUT_RECORD" || fail "$POWER_CUT_RECORD"
