#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: no arguments of an ioctl reach what was not declared, on the device or in memory
# DEVICE: test-plain
# MODULES: chario
# CHARIO_CALLS [6000], CHARIO_SEED [1]: the soak sets them.
. "$STEADY_TESTS/lib.sh"
set -e

emmc_reload capacity_mib=16 cache_kib=64 fault=any:timeout:ppm:500
pattern fuzz 16777216 >/run/before
dd if=/run/before of=/dev/mmcblk0 bs=1M conv=fsync 2>/dev/null
chario_take_regions @1M+65536@2M+1Mro
"$STEADY_TESTS_BIN/chardisk_fuzz" $CHARDISK_NODE "${CHARIO_SEED:-1}" "${CHARIO_CALLS:-6000}" >/run/fuzz ||
	fail "chardisk_fuzz ${CHARIO_SEED:-1} ${CHARIO_CALLS:-6000}: $(cat /run/fuzz)"
cat /run/fuzz
expect_at_least "calls that succeeded" "$(awk '{ print $2 }' /run/fuzz)" 500
expect_at_least "calls that were refused" "$(awk '{ print $4 }' /run/fuzz)" 1000
expect "a call after all that" "$(chardisk read offset=1048576 | cut -d ' ' -f 1)" 4096
chario_give

dd if=/dev/mmcblk0 of=/run/after bs=1M 2>/dev/null
cmp -n 1048576 /run/before /run/after
cmp -i $((1048576 + 65536)) /run/before /run/after
