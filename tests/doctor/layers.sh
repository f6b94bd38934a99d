#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Settings between a program and the scheduler of a card: each is found, and gone after the command that
# `steady doctor` prints; called by test_doctor.py in the guest, with $STEADY.
set -eu
card=mmcblk0
ask() { # $1: a name for the record
	"$STEADY" doctor /dev/$card --json >"$1.json" || true
}
fix() {
	"$STEADY" doctor /dev/$card | sed -n 's/^    \([^(].*\)/\1/p' >/tmp/fix
	sh -e /tmp/fix
}
echo k2 >/sys/block/$card/queue/scheduler
ask begin

mkfs.ext4 -q /dev/$card
mkdir /tmp/data
mount -o discard,lazytime /dev/$card /tmp/data
ask discard
fix
ask discard-fixed
umount /tmp/data

mount -t tmpfs tmpfs /sys/fs/cgroup
mkdir /sys/fs/cgroup/blkio
mount -t cgroup -o blkio blkio /sys/fs/cgroup/blkio
mkdir /sys/fs/cgroup/blkio/slow
echo "$(cat /sys/block/$card/dev) 1048576" >/sys/fs/cgroup/blkio/slow/blkio.throttle.write_bps_device
ask throttle
fix
ask throttle-fixed
