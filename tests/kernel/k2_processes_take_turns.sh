#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a process that has one request at a time waits for one of a process that has 32
# DEVICE: none
# MODULES: null_blk nr_devices=0
. "$STEADY_TESTS/lib.sh"
set -e

# 1 ms each, one at a time.
null_blk_create nullb0 completion_nsec=1000000
use_k2 nullb0 1 0

"$STEADY_TESTS_BIN/direct_io" write /dev/nullb0 0 65536 4096 32 1 &
writer=$!
sleep 0.05
begin_us=$(($(date +%s%N) / 1000))
dd if=/dev/nullb0 of=/dev/null bs=4k count=200 iflag=direct status=none
us=$((($(date +%s%N) / 1000 - begin_us) / 200))
kill -0 $writer 2>/dev/null || fail "the writer ended before the reader"
echo "a read takes $us us"
# One's own millisecond, that of one write, and the rest of the one that is in flight.
expect_at_most "us of a read" "$us" 2100
wait $writer
"$STEADY_TESTS_BIN/direct_io" verify /dev/nullb0 0 65536 4096 32 1

k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
