#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs in a guest with an eMMC: the commands of docs/guides/deadlines.md, one per line of the file
# `commands`, with the status that each must end with.
project=/run/steadyio/project
PATH=$project/build/bin:$PATH
queue=/sys/block/mmcblk0/queue

fail() {
	echo "$*"
	exit 1
}

under=
run() { # $1: number of the command, $2: its exit status
	command=$(sed -n "$1p" commands)
	echo "\$ $command"
	$under sh -c "exec $command"
	status=$?
	[ $status -eq "$2" ] || fail "$command: status $status, not $2"
}

mkfs.ext4 -q /dev/mmcblk0 2g
mkdir /tmp/data
# The guest's own folders are read only.
mount -t tmpfs tmpfs /etc
mount -o lazytime /dev/mmcblk0 /tmp/data
sed -i 's,/data/,/tmp/data/,' commands
cp $project/docs/examples/robot.toml .

run 1 1
run 2 0
run 3 0
run 4 0
grep -q "\[k2\]" $queue/scheduler || fail "k2 is not set"
run 5 0
# The first task as step 3 declares it, next to background, and its bound there.
declaration=$(steady bound card.toml robot.toml | sed -n "s/^  joints: --declare '\(.*\)'/\1/p")
bound_ns=$(steady bound card.toml robot.toml --json | sed -n '/"job"/,/}/s/.*"bound_ns": \([0-9]*\).*/\1/p' | head -1)
touch background
(
	while [ -e background ]; do
		dd if=/dev/mmcblk0 of=/dev/null bs=512k count=20 iflag=direct status=none
	done
) &
background=$!
longest_ns=$(steady with --device /dev/mmcblk0 --declare "$(echo "$declaration" | tr ' ' ,)" -- \
	"$STEADY_TESTS_BIN/declare" level=0 read=/dev/mmcblk0,4,500,10000 | sed -n 's/^max_ns //p')
rm background
wait $background
echo "joints: $longest_ns ns of $bound_ns"
# What step 4 gave its level 0, and no more than 5 s of the last.
ionice -c 1 -n 0 sh -c 'sleep 2; dd if=/dev/mmcblk0 of=/dev/null bs=4k count=5 iflag=direct status=none' &
under="timeout --preserve-status 5"
run 6 0
[ "$(cut -d' ' -f1 $queue/iosched/rt_deadline_us)" = 10000 ] || fail "deadlines are not set"
