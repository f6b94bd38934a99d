#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: with rt_block_us a lower real-time level blocks a better one for no longer
# DEVICE: test-plain
. "$STEADY_TESTS/lib.sh"
set -e

# The longest of 300 reads of 4 KiB of level 0, which come at any time.
level_0_max_ns() {
	"$STEADY_TESTS_BIN/rt_reader" /dev/mmcblk0 4 300 20000 4 0 read | awk '{ print $2 }'
}

bound_us=500
use_k2 mmcblk0 1 0
knob mmcblk0 iosched/rt_block_us $bound_us
alone_ns=$(level_0_max_ns)
while [ ! -e "$SCRATCH/done" ]; do
	ionice -c 1 -n 7 dd if=/dev/mmcblk0 of=/dev/null bs=1M count=20 iflag=direct status=none
done &
level_7=$!
beside_ns=$(level_0_max_ns)
touch "$SCRATCH/done"
wait $level_7
echo "level 0 alone $alone_ns, beside 1 MiB of level 7 $beside_ns"
# 5 % for what happens between the end of a piece and the next dispatch.
expect_at_most "level 0 beside level 7" "$beside_ns" $(((alone_ns + bound_us * 1000) * 105 / 100))
expect_at_least "real-time requests cut" "$(k2_count mmcblk0 rt split)" 100
# Alone, level 7 is not cut: nothing is better.
before=$(k2_count mmcblk0 rt split)
sleep 0.2
ionice -c 1 -n 7 dd if=/dev/mmcblk0 of=/dev/null bs=1M count=20 iflag=direct status=none
expect "requests cut for nobody" "$(k2_count mmcblk0 rt split)" "$before"
k2_expect_settled mmcblk0
knob mmcblk0 scheduler none
