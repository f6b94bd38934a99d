#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: the driver can be unbound and bound, and the module unloaded, idle and under load
# DEVICE: test-plain
. "$STEADY_TESTS/lib.sh"

for queue in 0 8; do
	emmc_reload capacity_mib=64 queue_depth=$queue
	pattern unbind 100000 >/run/wanted
	dd if=/run/wanted of=/dev/mmcblk0 bs=4096 conv=fsync 2>/dev/null || fail "write"
	for round in 1 2 3; do
		dd if=/dev/mmcblk0 of=/dev/null bs=1M iflag=direct 2>/run/dd &
		sleep 0.01
		emmc_unbind
		wait $!
		# The kernel ends the read with an error or, its capacity being gone, at once.
		grep -q "^64+0 records in" /run/dd && fail "round $round: read on without the card"
		[ -b /dev/mmcblk0 ] && fail "round $round: the node stays"
		emmc_bind
		cmp -n 100000 /run/wanted /dev/mmcblk0 || fail "round $round: content"
	done
done
emmc_unbind
rmmod steady_emmc || fail "rmmod while unbound"
insmod "$STEADY_MODULE_STEADY_EMMC" capacity_mib=64
emmc_wait
rmmod steady_emmc || fail "rmmod"
insmod "$STEADY_MODULE_STEADY_EMMC" capacity_mib=64
rmmod steady_emmc || fail "rmmod while the card is still being found"
insmod "$STEADY_MODULE_STEADY_EMMC" capacity_mib=64
