#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: registered buffers are safe with fork, close, signals, unmapping and RLIMIT_MEMLOCK
# DEVICE: test-plain
# MODULES: chario
# COMPAT: iter_segment.h
. "$STEADY_TESTS/lib.sh"

chario_take
"$STEADY_TESTS_BIN/chardisk_buffers" $CHARDISK_NODE || fail "buffers"
# Removed while a buffer is registered: it stays the process's until the file is closed.
"$STEADY_TESTS_BIN/chardisk_buffers" $CHARDISK_NODE >/dev/null 2>&1 &
sleep 0.05
emmc_unbind
wait $!
emmc_bind
