#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: data is right and all completes while the driver returns every fifth piece
# DEVICE: none
# FLAVOUR: debug
# MODULES: null_blk nr_devices=0 requeue=5,100,0,-1
# COMPAT: request_private.h
. "$STEADY_TESTS/lib.sh"
set -e

null_blk_create nullb0 completion_nsec=20000
use_k2 nullb0 4 8
"$STEADY_TESTS_BIN/io_stream" /dev/nullb0 jobs=3 rt_jobs=1 ios=150 region_kib=2048 largest_kib=256 \
	hint_percent=20 sync_percent=10
expect_at_least "pieces given back" "$(k2_count nullb0 background retried)" 100
expect_at_least "rt given back" "$(k2_count nullb0 rt retried)" 5

k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
