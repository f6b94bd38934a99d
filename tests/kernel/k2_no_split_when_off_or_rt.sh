#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: split_kib=0 cuts nothing, and real-time requests are never cut
# DEVICE: none
# MODULES: null_blk nr_devices=0
# STOCK: yes
. "$STEADY_TESTS/lib.sh"
set -e

null_blk_create nullb0 completion_nsec=10000
use_k2 nullb0 1 0
dd if=/dev/nullb0 of=/dev/null bs=512k count=4 iflag=direct status=none
expect "background dispatched" "$(k2_count nullb0 background dispatched)" 4
expect "background split" "$(k2_count nullb0 background split)" 0

knob nullb0 iosched/split_kib 4
ionice -c 1 -n 3 dd if=/dev/nullb0 of=/dev/null bs=512k count=4 iflag=direct status=none
expect "rt dispatched" "$(k2_count nullb0 rt dispatched)" 4
expect "rt split" "$(k2_count nullb0 rt split)" 0

k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
