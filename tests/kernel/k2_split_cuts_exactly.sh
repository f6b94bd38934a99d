#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a request is dispatched in pieces of split_kib, in order, and counted as one I/O
# DEVICE: none
# MODULES: null_blk nr_devices=0
# STOCK: yes
# COMPAT: request_private.h
. "$STEADY_TESTS/lib.sh"
set -e

null_blk_create nullb0 completion_nsec=10000
use_k2 nullb0 1 4
ios_before=$(awk '{ print $1 }' /sys/block/nullb0/stat)
sectors_before=$(awk '{ print $3 }' /sys/block/nullb0/stat)

trace_begin k2/k2_dispatch k2/k2_split
dd if=/dev/nullb0 of=/dev/null bs=512k count=1 skip=2 iflag=direct status=none
trace_end >"$SCRATCH/trace"

# 2048, 2056, ... 3064: 128 pieces of 8 sectors, each but the last cut off a rest.
awk '/k2_dispatch:/ { for (i = 1; i <= NF; i++) if ($i == "+") print $(i - 1), $(i + 1) }' \
	"$SCRATCH/trace" >"$SCRATCH/pieces"
seq 2048 8 3064 | sed 's/$/ 4096/' >"$SCRATCH/expected"
cmp "$SCRATCH/pieces" "$SCRATCH/expected" || fail "wrong pieces: $(head "$SCRATCH/pieces")"
expect "splits traced" "$(grep -c k2_split: "$SCRATCH/trace")" 127
expect "splits counted" "$(k2_count nullb0 background split)" 127
expect "first rest" "$(awk '/k2_split:/ { print $(NF - 1); exit }' "$SCRATCH/trace")" 520192

expect "I/Os in the statistics" \
	"$(($(awk '{ print $1 }' /sys/block/nullb0/stat) - ios_before))" 1
expect "sectors in the statistics" \
	"$(($(awk '{ print $3 }' /sys/block/nullb0/stat) - sectors_before))" 1024
expect "in flight in the statistics" "$(awk '{ print $9 }' /sys/block/nullb0/stat)" 0

k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
