#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs in a guest with an eMMC: what `steady probe --write` refuses, and what a stopped one leaves.
steady=/run/steadyio/project/build/bin/steady
knobs=/sys/block/mmcblk0/queue/scheduler

fail() {
	echo "$*"
	cat said
	exit 1
}

refused() { # $1: words of the message, $2: what --write names
	$steady probe /dev/mmcblk0 --quick --write="$2" >said 2>&1
	status=$?
	[ $status -eq 2 ] || fail "--write=$2: status $status"
	grep -q "$1" said || fail "--write=$2: does not say: $1"
}

echo k2 >$knobs
mkfs.ext4 -q /dev/mmcblk0
refused "holds an ext2, ext3 or ext4 filesystem, which the probe would destroy" /dev/mmcblk0

mkdir /tmp/mnt
mount /dev/mmcblk0 /tmp/mnt
refused "is in use (mounted on /tmp/mnt)" /dev/mmcblk0
refused "its file system is on 0:[0-9]*, not on mmcblk0, the disk to probe" /tmp/elsewhere
[ ! -e /tmp/elsewhere ] || fail "a file is left elsewhere"
touch /tmp/mnt/mine
refused "exists: --write makes a new file" /tmp/mnt/mine

$steady probe /dev/mmcblk0 --quick --write=/tmp/mnt/own --out=stopped.toml 2>said &
probe=$!
sleep 40
[ -e /tmp/mnt/own ] || fail "there is no file to write to"
kill -TERM $probe
wait $probe
status=$?
[ $status -eq 130 ] || fail "stopped: status $status"
[ ! -e /tmp/mnt/own ] || fail "stopped: its file is left"
[ ! -e stopped.toml ] || fail "stopped: a profile is left"
grep -q "\[k2\]" $knobs || fail "stopped: another scheduler is left"
