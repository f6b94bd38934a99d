#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a flush that waits behind writes in the queue ends with an error when power is cut
# DEVICE: test-queue
. "$STEADY_TESTS/lib.sh"

# stream OPTION...: writes until one fails
stream() {
	while dd if=/dev/zero of=/dev/mmcblk0 bs=512k count=1 "$@" 2>/dev/null; do
		:
	done
}

for number in 1 2 3 4; do
	stream seek=$number oflag=direct &
done
stream seek=8 conv=fsync &
sleep 1
emmc_power_cut
wait # without end if a request is lost, which the kernel reports
expect "left in flight" "$(emmc_stat inflight)" 0
emmc_unbind
emmc_bind
dd if=/dev/zero of=/dev/mmcblk0 bs=512k count=1 conv=fsync 2>/dev/null || fail "with power again"
