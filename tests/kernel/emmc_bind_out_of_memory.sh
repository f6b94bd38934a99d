#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: binding the driver fails cleanly whichever allocation fails, and works afterwards
# DEVICE: test-queue
# FLAVOUR: debug
# ALONE: it makes allocations of the whole guest fail
. "$STEADY_TESTS/lib.sh"

driver=/sys/bus/platform/drivers/steady_emmc
emmc_unbind
echo N >/sys/kernel/debug/failslab/ignore-gfp-wait
echo 0 >/sys/kernel/debug/failslab/verbose
refused=0 bound=0
for nth in $(seq 1 60); do
	(
		echo "$nth" >/proc/self/fail-nth
		echo steady_emmc >$driver/bind
	)
	if [ -e $driver/steady_emmc ]; then
		bound=$((bound + 1))
		emmc_unbind
	else
		refused=$((refused + 1))
	fi
done
echo "refused $refused, bound $bound"
[ "$refused" -gt 5 ] || fail "only $refused binds failed: allocations are not made to fail"
[ "$bound" -gt 0 ] || fail "no bind worked: not every allocation was tried"
emmc_bind
