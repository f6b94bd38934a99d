#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Settings of a card with a cache, a file system on it, and a lane: each is found, and gone after its
# fix, or with the file system; called by test_doctor.py in the guest, with $STEADY.
set -eu
card=mmcblk0
queue=/sys/block/$card/queue
ask() { # $1: a name for the record
	"$STEADY" doctor /dev/$card --json >"$1.json" || true
}
fix() {
	"$STEADY" doctor /dev/$card | sed -n 's/^    \([^(].*\)/\1/p' >/tmp/fix
	sh -e /tmp/fix
}
echo k2 >$queue/scheduler
ask begin
mkfs.ext4 -q /dev/$card
mkdir /tmp/data
mount -o lazytime,discard /dev/$card /tmp/data
ask mounted
umount /tmp/data
ask unmounted

# A partition of 8 MiB.
{
	head -c 446 /dev/zero
	printf '\000\000\000\000\203\000\000\000\000\010\000\000\000\100\000\000'
	head -c 48 /dev/zero
	printf '\125\252'
} | dd of=/dev/$card conv=fsync status=none
blockdev --rereadpt /dev/$card
ask partitioned
echo ${card}p1 >/sys/bus/mmc/drivers/chario/lane
ask lane
fix
ask lane-fixed
