#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: faults of the emulated SCSI disk reach user space as errors, and it keeps working
# DEVICE: test-scsi
. "$STEADY_TESTS/lib.sh"

works() {
	dd if=/run/wanted of=/dev/sda bs=4096 seek=1000 oflag=direct status=none || fail "write elsewhere"
	dd if=/dev/sda bs=4096 skip=1000 count=2 iflag=direct status=none | cmp - /run/wanted ||
		fail "content elsewhere"
	k2_expect_settled sda
}

pattern works 8192 >/run/wanted
use_k2 sda 1 4
works
fails read "No data available" dd if=/dev/sda of=/dev/null bs=4096 skip=256 count=1 iflag=direct
works
fails write "Input/output error" dd if=/dev/zero of=/dev/sda bs=4096 seek=512 count=1 oflag=direct
works
# Only the sectors that are named fail.
dd if=/dev/sda of=/dev/null bs=512 skip=2050 count=6 iflag=direct status=none ||
	fail "neighbours of a bad sector"

# Each attempt times out, is aborted, and the disk is reset. The kernel would give the disk up after
# two attempts.
echo 1 >/sys/block/sda/device/timeout
echo 1000 >/sys/class/scsi_disk/0:0:0:0/max_medium_access_timeouts
fails time-out "Input/output error" dd if=/dev/sda of=/dev/null bs=512 skip=6144 count=1 iflag=direct
expect_at_least "commands without answer" "$(scsi_stat silent)" 2
works
