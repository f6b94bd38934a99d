#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What `steady doctor` finds on a card, before and after each fix; called by
# test_doctor.py in the guest, with $STEADY.
set -eu
card=mmcblk0
ask() {
	status=0
	"$STEADY" doctor /dev/$card --json >"$1.json" || status=$?
	echo "$1 $status"
}
ask begin
echo k2 >/sys/block/$card/queue/scheduler
ask k2
chrt --fifo 30 sleep 1000 &
task=$!
until chrt --pid $task | grep -q SCHED_FIFO; do sleep 0.1; done
ask broken
"$STEADY" with --device /dev/$card --kworkers-fifo 31 -- "$STEADY" doctor /dev/$card --json >raised.json ||
	true
kill $task
wait $task || true
ask end
