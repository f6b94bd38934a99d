#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: every hundredth piece times out: its I/O fails, all others keep their data, nothing hangs
# DEVICE: none
# FLAVOUR: debug
# MODULES: null_blk nr_devices=0 timeout=100,100,0,-1
. "$STEADY_TESTS/lib.sh"
set -e

null_blk_create nullb0 completion_nsec=20000
use_k2 nullb0 3 8
knob nullb0 io_timeout 200
"$STEADY_TESTS_BIN/io_stream" /dev/nullb0 jobs=3 rt_jobs=1 ios=80 region_kib=2048 \
	hint_percent=20 errors=1 >"$SCRATCH/streams" || fail "$(cat "$SCRATCH/streams")"
cat "$SCRATCH/streams"
failed=$(awk '{ sum += $9 } END { print sum }' "$SCRATCH/streams")
expect_at_least "I/Os that timed out" "$failed" 10

k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
