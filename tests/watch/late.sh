#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# A real-time read that is late because of background; called by test_guest.py in the guest, with $STEADY.
set -eu
queue=/sys/block/mmcblk0/queue
echo k2 >$queue/scheduler
echo 0 >$queue/iosched/rt_block_us
echo 1 >$queue/iosched/inflight_max
echo '0 0 0 0 2000 0 0 0' >$queue/iosched/rt_deadline_us
readings() {
	ionice -c 2 dd if=/dev/mmcblk0 of=/dev/null bs=512k count=100 iflag=direct status=none &
	ionice -c 1 -n 4 dd if=/dev/mmcblk0 of=/dev/null bs=4k count=200 iflag=direct status=none
	sleep 2
}
"$STEADY" watch mmcblk0 --quiet --interval 100ms --traces traces --traces-max 1 2>said &
watch=$!
until [ -d traces ]; do sleep 0.1; done
sleep 0.5
readings
kill -TERM $watch
wait $watch
"$STEADY" trace --json traces/late-1 >trace.json || [ $? = 3 ]
# The same event ends a trace.
"$STEADY" trace --device mmcblk0 --trigger-late --duration 1min >/dev/null 2>ended &
trace=$!
sleep 0.5
readings
wait $trace || [ $? = 3 ]
