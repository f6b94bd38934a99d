#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: one transfer of more than 2 GiB goes to its end
# DEVICE: test-plain
# FLAVOUR: base
# MODULES: chario
. "$STEADY_TESTS/lib.sh"

emmc_reload capacity_mib=2304 read_per_kib_ns=10
chario_take
expect "bytes" "$("$STEADY_TESTS_BIN/chardisk_long" $CHARDISK_NODE)" $((33 * 64 * 1048576))
chario_give
