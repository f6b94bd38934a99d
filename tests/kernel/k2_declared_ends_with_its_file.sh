#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a task ends when its file is closed, by a kill as well, and when its owner is gone though a child has the file
# DEVICE: test-plain
. "$STEADY_TESTS/lib.sh"
. "$STEADY_TESTS/lib_declared.sh"
set -e

use_declared mmcblk0
no_tasks mmcblk0
line=$(task mmcblk0 0 10000)

"$DECLARE" "line=$line" sleep=600000 &
pid=$!
sleep 0.1
expect_at_least "requests cut for a task" "$(background_splits mmcblk0)" 20
if rmmod k2 2>"$SCRATCH/error"; then
	fail "k2 was unloaded with an open file"
fi
kill -9 $pid
wait $pid || true
no_tasks mmcblk0

# The owner is still there after an exec.
"$DECLARE" "line=$line" exec sleep 600 &
pid=$!
sleep 0.1
expect_at_least "requests cut after an exec" "$(background_splits mmcblk0)" 20
kill -9 $pid
wait $pid || true
no_tasks mmcblk0

# A child has the file, but the owner is gone: at the next look, which is every 100 ms.
"$DECLARE" "line=$line" fork sleep=1000 show >"$SCRATCH/out"
background_splits mmcblk0 >/dev/null
sleep 0.2
background_splits mmcblk0 >/dev/null
expect "requests cut for an owner that is gone" "$(background_splits mmcblk0)" 0
sleep 1
expect state "$(value state <"$SCRATCH/out")" owner-gone
no_tasks mmcblk0

# In mid-job.
"$DECLARE" "line=$line" level=0 read=/dev/mmcblk0,512,1000,3000 &
pid=$!
sleep 0.1
kill -9 $pid
wait $pid || true
no_tasks mmcblk0
"$DECLARE" "line=$line" level=0 read=/dev/mmcblk0,4,3,10000 show >"$SCRATCH/out"
expect "jobs of the next" "$(value jobs <"$SCRATCH/out")" 3
expect "early jobs of the next" "$(value early <"$SCRATCH/out")" 0
k2_expect_settled mmcblk0
knob mmcblk0 scheduler none
expect "module users" "$(cat /sys/module/k2/refcnt)" 0
