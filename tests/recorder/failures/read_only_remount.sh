#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a file system that turns read-only under a recording ends it with an error, and records reported durable survive a power cut
# DEVICE: test-cut
# FLAVOUR: base
. "$STEADY_FAILURES/recorder.sh"

# read_only HOW: in the middle of a recording; half a second later, power is cut.
read_only() {
	make_filesystem
	record --total 1500KiB &
	recorder=$!
	sleep 0.3
	"$1"
	sleep 0.5
	emmc_power_cut
	wait $recorder
	expect "status after $1" $? 5
	[ -s record.err ] || fail "says nothing"
	expect_kept "after $1"
	umount /run/mnt
}

# What ext4 does when it meets an error and errors=remount-ro.
abort() {
	mount -o remount,abort /run/mnt || fail "abort"
}

# The kernel's own, with files open for writing: fdatasync() flushes nothing then, and returns success.
emergency() {
	echo 1 >/proc/sys/kernel/sysrq
	echo u >/proc/sysrq-trigger
}

read_only abort
read_only emergency
