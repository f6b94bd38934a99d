#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: background takes three quarters of the tags and no more, whatever a limit counts
# DEVICE: none
# MODULES: null_blk nr_devices=0
# COMPAT: shallow_depth.h
. "$STEADY_TESTS/lib.sh"
set -e

# One at a time, 100 ms each: 40 readers want more than their share of 32 tags.
null_blk_create nullb0 completion_nsec=100000000
use_k2 nullb0 1 0
knob nullb0 nr_requests 32
readers=
for place in $(seq 40); do
	dd if=/dev/nullb0 of=/dev/null bs=4k skip=$((place * 2)) count=1 iflag=direct status=none &
	readers="$readers $!"
done
sleep 0.05
tags=/sys/kernel/debug/block/nullb0/hctx0/sched_tags
expect "tags" "$(sed -n 's/^depth=//p' $tags)" 32
expect "tags in use" "$(sed -n 's/^busy=//p' $tags)" 24
for reader in $readers; do
	wait "$reader"
done
k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
