#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Late durable real-time writes on a card with a cache, while `steady watch` runs; called by
# test_guest.py in the guest, with $STEADY.
set -eu
queue=/sys/block/mmcblk0/queue
echo k2 >$queue/scheduler
echo '0 0 100 0 0 0 0 0' >$queue/iosched/rt_deadline_us
"$STEADY" watch --json --interval 100ms >watch.json 2>said &
watch=$!
until [ -s watch.json ]; do sleep 0.1; done
ionice -c 1 -n 2 dd if=/dev/zero of=/dev/mmcblk0 bs=4k count=20 oflag=direct,dsync status=none
ionice -c 2 dd if=/dev/zero of=/dev/mmcblk0 bs=4k count=5 oflag=direct,dsync status=none
sleep 0.3
kill -TERM $watch
wait $watch
