#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# A declared task that comes too early, and loses its limits with its scheduler, while `steady watch`
# runs; called by test_guest.py in the guest, with $STEADY.
set -eu
queue=/sys/block/mmcblk0/queue
echo k2 >$queue/scheduler
echo "read 130000 4000 write 230000 8000" >$queue/iosched/device_limits
"$STEADY" watch --json --interval 100ms >watch.json 2>said &
watch=$!
until [ -s watch.json ]; do sleep 0.1; done
# Without a reader dd waits once the pipe is full.
mkfifo /tmp/pipe
"$STEADY" with --device /dev/mmcblk0 --declare level=2,period_us=10000,block_us=440 -- \
	dd if=/dev/mmcblk0 of=/tmp/pipe bs=4k count=20 iflag=direct status=none &
task=$!
exec 3<>/tmp/pipe
sleep 0.5
"$STEADY" doctor /dev/mmcblk0 --json >early.json || true
echo none >$queue/scheduler
echo k2 >$queue/scheduler
sleep 0.5
"$STEADY" doctor /dev/mmcblk0 --json >unarmed.json || true
cat /tmp/pipe >/dev/null &
reader=$!
wait $task
kill -TERM $watch $reader
wait $watch
"$STEADY" doctor /dev/mmcblk0 --json >end.json
