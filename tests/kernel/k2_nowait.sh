#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: I/O that must not wait is done, in pieces, or rejected with EAGAIN if there is no tag
# DEVICE: none
# MODULES: null_blk nr_devices=0
# STOCK: yes
. "$STEADY_TESTS/lib.sh"
set -e

null_blk_create nullb0 completion_nsec=50000
use_k2 nullb0 2 4
for engine in sync aio uring; do
	expect "nowait by $engine" "$("$STEADY_TESTS_BIN/one_io" $engine read /dev/nullb0 0 65536 \
		nowait=1)" "result 65536"
done
expect "split" "$(k2_count nullb0 background split)" 45

# Fewer tags than I/Os: some are rejected at submission, none hangs, and data is right.
knob nullb0 nr_requests 4
"$STEADY_TESTS_BIN/io_stream" /dev/nullb0 jobs=3 depth=16 rt_jobs=1 ios=150 region_kib=1024 \
	largest_kib=64 nowait_percent=60 >"$SCRATCH/streams" || fail "$(cat "$SCRATCH/streams")"
cat "$SCRATCH/streams"
expect_at_least "refused" "$(stream_sum refused "$SCRATCH/streams")" 10
k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
