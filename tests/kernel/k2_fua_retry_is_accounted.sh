#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a FUA write that the driver returns enters the scheduler unprepared; it is counted, too.
# DEVICE: none
# FLAVOUR: debug
# MODULES: null_blk nr_devices=0 requeue=3,100,0,-1
# COMPAT: request_private.h
# KERNELS: 6.1
# On 6.12 a FUA write enters the scheduler like any other, prepared, the first time already.
. "$STEADY_TESTS/lib.sh"
set -e

null_blk_create nullb0 completion_nsec=10000 cache_size=1
expect "FUA" "$(knob nullb0 fua)" 1
use_k2 nullb0 1 0

# The writes bypass the scheduler, until the driver returns one: every third request, in turn with
# BLK_STS_RESOURCE and with a requeue. The reads, real-time so as not to be counted with them, shift
# that rhythm against the one of writes and flushes.
for place in 0 1 2 3 4 5 6 7; do
	# Whole and in pieces: some of each half must be returned.
	[ $place -ne 4 ] || {
		whole=$(k2_count nullb0 background inserted)
		k2_expect_settled nullb0
		knob nullb0 iosched/split_kib 4
	}
	dd if=/dev/zero of=/dev/nullb0 bs=64k count=3 seek=$((place * 3)) oflag=direct,dsync \
		status=none
	ionice -c 1 dd if=/dev/nullb0 of=/dev/null bs=4k count=1 iflag=direct status=none
done
inserted=$(k2_count nullb0 background inserted)
expect_at_least "whole writes that came back" "$whole" 1
expect_at_least "writes that came back to be split" "$((inserted - whole))" 1
expect_at_most "writes that came back" "$inserted" 23
expect_at_least "split" "$(k2_count nullb0 background split)" 1
dd if=/dev/nullb0 bs=64k count=24 iflag=direct status=none | cmp -n $((24 * 65536)) - /dev/zero

k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
