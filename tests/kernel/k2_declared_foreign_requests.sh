#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: requests of others on an owned level are counted, and served one level lower; a cgroup owns for all its processes
# DEVICE: test-plain
. "$STEADY_TESTS/lib.sh"
. "$STEADY_TESTS/lib_declared.sh"
set -e

use_declared mmcblk0
"$DECLARE" "line=$(task mmcblk0 1 10000)" level=1 read=/dev/mmcblk0,4,2,10000 sleep=1000 show \
	>"$SCRATCH/owner" &
owner=$!
sleep 0.5
trace_begin k2/k2_dispatch
"$DECLARE" level=1 read=/dev/mmcblk0,4,3,10000 >"$SCRATCH/stranger"
trace_end >"$SCRATCH/trace"
wait $owner
expect "requests on level 2" "$(grep -c ' queue 2 ' "$SCRATCH/trace")" 3
expect foreign "$(value foreign <"$SCRATCH/owner")" 3
expect jobs "$(value jobs <"$SCRATCH/owner")" 2

# All levels are owned: the stranger is background.
lines=""
for level in 0 1 2 3 4 5 6 7; do
	lines="$lines
line=$(task mmcblk0 $level 10000)"
done
(
	IFS='
'
	# shellcheck disable=SC2086
	"$DECLARE" $lines sleep=1000 show >"$SCRATCH/owner"
) &
owner=$!
sleep 0.5
trace_begin k2/k2_dispatch
"$DECLARE" level=6 read=/dev/mmcblk0,4,3,10000 >"$SCRATCH/stranger"
trace_end >"$SCRATCH/trace"
wait $owner
expect "requests of best effort" "$(grep -c ' queue 9 ' "$SCRATCH/trace")" 3
expect foreign "$(value foreign <"$SCRATCH/owner" | tr '\n' ' ')" "0 0 0 0 0 0 3 3 "

mkdir /run/cgroup
mount -t cgroup2 cgroup2 /run/cgroup
mkdir /run/cgroup/robot
(
	# This shell, with its children: 0 stands for the writing process.
	echo 0 >/run/cgroup/robot/cgroup.procs
	"$DECLARE" "line=$(task mmcblk0 0 10000 owner=cgroup)" sleep=500 show >"$SCRATCH/owner" &
	owner=$!
	sleep 0.1
	"$DECLARE" level=0 read=/dev/mmcblk0,4,3,10000 >"$SCRATCH/member"
	wait $owner
)
expect "jobs of the cgroup" "$(value jobs <"$SCRATCH/owner")" 3
expect "owner" "$(value owner <"$SCRATCH/owner")" cgroup
expect "foreign requests of the cgroup" "$(value foreign <"$SCRATCH/owner")" 0
rmdir /run/cgroup/robot
umount /run/cgroup
no_tasks mmcblk0
knob mmcblk0 scheduler none
