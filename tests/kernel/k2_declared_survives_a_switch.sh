#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a task stays declared while another scheduler is used, and is armed again when k2 is back with limits
# DEVICE: test-plain
. "$STEADY_TESTS/lib.sh"
. "$STEADY_TESTS/lib_declared.sh"
set -e

# state: as a reader of the device's list sees it; there is none without k2.
state() {
	value state </sys/block/mmcblk0/queue/iosched/rt_declared
}

use_declared mmcblk0
"$DECLARE" "line=$(task mmcblk0 0 10000)" level=0 read=/dev/mmcblk0,4,4,10000 poll sleep=100 \
	show poll sleep=900 poll show sleep=1000 show >"$SCRATCH/out" &
pid=$!
sleep 0.5
expect "state before" "$(state)" armed
knob mmcblk0 scheduler none
sleep 1
expect "shown without k2" "$(value state <"$SCRATCH/out" | tr '\n' ' ')" "armed no-k2 "
knob mmcblk0 scheduler k2
knob mmcblk0 iosched/rt_block_us 0
expect "state without limits" "$(state)" no-limits
expect "requests cut without limits" "$(background_splits mmcblk0)" 0
knob mmcblk0 iosched/device_limits "read 430000 4000 write 530000 8000"
expect "state on a slow device" "$(state)" block-too-short
knob mmcblk0 iosched/device_limits "$DECLARED_LIMITS"
expect "state after" "$(state)" armed
expect_at_least "requests cut after" "$(background_splits mmcblk0)" 20
wait $pid
cat "$SCRATCH/out"
expect interrupted "$(value interrupted <"$SCRATCH/out" | tr '\n' ' ')" "0 1 1 "
expect jobs "$(value jobs <"$SCRATCH/out" | tr '\n' ' ')" "4 4 4 "
expect "what poll said" "$(grep changed "$SCRATCH/out" | tr '\n' ' ')" \
	"unchanged unchanged changed "
no_tasks mmcblk0

# k2 goes under load, next to requests of the task.
for _ in 1 2 3 4 5; do
	"$DECLARE" "line=$(task mmcblk0 0 3000)" level=0 read=/dev/mmcblk0,64,20,3000 \
		>"$SCRATCH/out" &
	pid=$!
	begin_background mmcblk0
	sleep 0.02
	knob mmcblk0 scheduler none
	knob mmcblk0 scheduler k2
	knob mmcblk0 iosched/device_limits "$DECLARED_LIMITS"
	end_background
	wait $pid
done
k2_expect_settled mmcblk0
knob mmcblk0 scheduler none
