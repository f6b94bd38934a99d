#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: data is right while allocations fail at random, of slabs and of pages, those of clones included
# DEVICE: none
# MODULES: null_blk nr_devices=0
# FLAVOUR: debug
# ALONE: it makes allocations of the whole guest fail
. "$STEADY_TESTS/lib.sh"
set -e

# More in flight than clones are in reserve.
null_blk_create nullb0 completion_nsec=100000
use_k2 nullb0 48 4
"$STEADY_TESTS_BIN/io_stream" /dev/nullb0 jobs=8 depth=16 rt_jobs=1 ios=30 region_kib=1024 largest_kib=256 \
	hint_percent=20 &
streams=$!
# The processes exist and have their priorities: these allocations have to succeed.
sleep 0.001
for fault in failslab fail_page_alloc; do
	echo 0 >/sys/kernel/debug/$fault/verbose
	echo -1 >"/sys/kernel/debug/$fault/times"
	echo 70 >/sys/kernel/debug/$fault/probability
done
wait $streams
for fault in failslab fail_page_alloc; do
	echo 0 >/sys/kernel/debug/$fault/probability
done
expect_at_least "split" "$(k2_count nullb0 background split)" 1000

k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
