#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: the NVMe driver retries, aborts and resets after faults; what is left, programs see
# DEVICE: none
# MODULES: nvme
. "$STEADY_TESTS/lib.sh"

nvme_create fault=write:timeout:op:1,read:error:sectors:2048-2049,write:error:sectors:8192-8199,read:timeout:sectors:6144-6144

works() {
	dd if=/run/wanted of=/dev/nvme0n1 bs=8192 oflag=direct status=none || fail "write elsewhere"
	dd if=/dev/nvme0n1 bs=8192 count=1 iflag=direct status=none | cmp - /run/wanted ||
		fail "content elsewhere"
	expect inflight "$(nvme_stat inflight)" 0
}

# A write that gets no answer is given again after a reset.
pattern works 8192 >/run/wanted
dd if=/run/wanted of=/dev/nvme0n1 bs=8192 seek=1 oflag=direct status=none &
sleep 0.1
expect "without answer" "$(nvme_stat silent) $(nvme_stat inflight)" "1 1"
echo 1 >/sys/class/nvme/nvme0/reset_controller || fail "reset"
wait $! || fail "a write that a reset interrupts"
dd if=/dev/nvme0n1 bs=8192 skip=1 count=1 iflag=direct status=none | cmp - /run/wanted ||
	fail "content of the write that a reset interrupts"
works

# The first attempt, and five more of the driver.
fails read "No data available" dd if=/dev/nvme0n1 of=/dev/null bs=4096 skip=256 count=1 iflag=direct
expect "failed reads" "$(nvme_stat failed)" 6
fails write "No data available" dd if=/dev/zero of=/dev/nvme0n1 bs=4096 seek=1024 count=1 oflag=direct
works
# Only the sectors that are named fail.
dd if=/dev/nvme0n1 of=/dev/null bs=512 skip=2050 count=6 iflag=direct status=none ||
	fail "neighbours of a bad sector"

# Each attempt times out and is aborted.
knob nvme0n1 io_timeout 500
fails time-out "Input/output error" dd if=/dev/nvme0n1 of=/dev/null bs=512 skip=6144 count=1 iflag=direct
expect "commands without answer" "$(nvme_stat silent)" 7
works
