#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Reads of known number and class on a card during `steady watch`, and another scheduler for a while; called
# by test_guest.py in the guest, with $STEADY.
set -eu
queue=/sys/block/mmcblk0/queue
readings() { # $1: level, $2: KiB, $3: how many
	ionice -c 1 -n "$1" dd if=/dev/mmcblk0 of=/dev/null bs="$2k" count="$3" iflag=direct status=none
}
echo k2 >$queue/scheduler
echo '0 0 0 0 1000 0 0 0' >$queue/iosched/rt_deadline_us
"$STEADY" watch --json --interval 100ms >watch.json 2>said &
watch=$!
until [ -s watch.json ]; do sleep 0.1; done
readings 4 4 100
readings 4 256 3
sleep 0.3
echo none >$queue/scheduler
sleep 0.3
echo k2 >$queue/scheduler
readings 0 4 7
sleep 0.3
kill -TERM $watch
wait $watch
