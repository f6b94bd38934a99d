#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a write with FUA is scheduled and split; one that a flush must follow stays whole
# DEVICE: none
# MODULES: null_blk nr_devices=0
# KERNELS: 6.12 7.3
# On 6.1 neither enters the scheduler.
. "$STEADY_TESTS/lib.sh"
set -e

# nullb1's driver knows no FUA: there blk-mq sends a flush after the data, and ends the request twice.
null_blk_create nullb0 completion_nsec=20000 cache_size=1
null_blk_create nullb1 completion_nsec=20000 cache_size=1 fua=0
pattern data 262144 >"$SCRATCH/data"

for disk in nullb0 nullb1; do
	use_k2 $disk 1 4
	trace_begin block/block_rq_issue
	dd if="$SCRATCH/data" of=/dev/$disk bs=64k oflag=direct,dsync status=none
	trace_end >"$SCRATCH/issued.$disk"
	expect "inserted on $disk" "$(k2_count $disk background inserted)" 4
	dd if=/dev/$disk bs=64k count=4 iflag=direct status=none | cmp - "$SCRATCH/data"
	k2_expect_settled $disk
done

# Each piece is a write with FUA; without, each write is followed by a flush, and by another that
# dsync asks for in any case.
expect "FUA on nullb0" "$(knob nullb0 fua)" 1
expect "pieces with FUA" "$(grep -c ' WFS 4096 ' "$SCRATCH/issued.nullb0")" 64
expect "whole writes" "$(grep -c ' WS 65536 ' "$SCRATCH/issued.nullb1")" 4
expect "flushes" "$(grep -c ' FF 0 ' "$SCRATCH/issued.nullb1")" 8

for disk in nullb0 nullb1; do
	knob $disk scheduler none
	null_blk_remove $disk
done
