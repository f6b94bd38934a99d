#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs in a guest with an eMMC, which goes away while `steady probe` measures it.
steady=/run/steadyio/project/build/bin/steady

fail() {
	echo "$*"
	cat said
	exit 1
}

$steady probe /dev/mmcblk0 --quick --out=gone.toml >said 2>&1 &
probe=$!
sleep 10
echo steady_emmc >/sys/bus/platform/drivers/steady_emmc/unbind
wait $probe
status=$?
[ $status -eq 1 ] || fail "status $status"
grep -q "^steady: /dev/mmcblk0 at .*: .*has the device gone away" said ||
	fail "the message does not say so"
[ ! -e gone.toml ] || fail "a profile is left"
cat said
