#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: with rt_block_us a large real-time request is cut for the sake of a better level
# DEVICE: test-plain
. "$STEADY_TESTS/lib.sh"
set -e

use_k2 mmcblk0 1 0
knob mmcblk0 iosched/rt_block_us 500
# Level 7 reads 1 MiB, again and again, while level 0 reads 4 KiB now and then.
for level in 7 0; do
	if [ $level = 7 ]; then size=1M count=100; else size=4K count=100; fi
	ionice -c 1 -n $level dd if=/dev/mmcblk0 of=/dev/null bs=$size count=$count iflag=direct \
		status=none &
done
wait
expect_at_least "real-time requests cut" "$(k2_count mmcblk0 rt split)" 1
# Alone, level 7 is not cut: nothing is better.
before=$(k2_count mmcblk0 rt split)
sleep 0.2
ionice -c 1 -n 7 dd if=/dev/mmcblk0 of=/dev/null bs=1M count=20 iflag=direct status=none
expect "requests cut for nobody" "$(k2_count mmcblk0 rt split)" "$before"
k2_expect_settled mmcblk0
knob mmcblk0 scheduler none
