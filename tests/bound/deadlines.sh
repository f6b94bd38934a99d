#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs in a guest with an eMMC: the commands of docs/guides/deadlines.md, one per line of the file
# `commands`, with the status that each must end with. test_deadlines.py sets $TASKS, the example that
# fits the card, $FIRST, the first task in it, with its $PERIOD_US, for how long it runs, $LENGTH_S, and
# $KEPT, what doctor still finds at the end.
project=/run/steadyio/project
PATH=$project/build/bin:$PATH
queue=/sys/block/mmcblk0/queue

fail() {
	echo "$*"
	exit 1
}

under=
run() { # $1: number of the command, $2: its exit status. Its output is then in the file `said`.
	command=$(sed -n "$1p" commands)
	echo "\$ $command"
	$under sh -c "exec $command" >said 2>&1
	status=$?
	cat said
	[ $status -eq "$2" ] || fail "$command: status $status, not $2"
}

# Reads and writes of other programs, as the examples' [background] states them.
load() {
	while [ -e busy ]; do
		dd if=/dev/mmcblk0 of=/dev/null bs=512k count=20 iflag=direct status=none
		dd if=/dev/zero of=/tmp/data/load bs=512k count=20 oflag=direct conv=notrunc status=none
	done
}

mkfs.ext4 -q /dev/mmcblk0 1000m
mkdir /tmp/data
# The guest's own folders are read only.
mount -t tmpfs tmpfs /etc
mount -o lazytime /dev/mmcblk0 /tmp/data
dd if=/dev/zero of=/tmp/data/load bs=512k count=20 conv=fsync status=none
sed -i 's,/data/,/tmp/data/,' commands
cp $project/docs/examples/*.toml .
before=$(cat $queue/scheduler)

run 1 1
run 2 0
if [ "$TASKS" != robot ]; then
	run 3 3
	sed -i "s/robot/$TASKS/" commands
fi
run 3 0
bound_ns=$(steady bound card.toml "$TASKS.toml" --json | sed -n '/"job"/,/}/s/.*"bound_ns": \([0-9]*\).*/\1/p' | head -1)
run 4 0
grep -q "\[k2\]" $queue/scheduler || fail "k2 is not set"
with=$(sed -n "s/^steady: task $FIRST: run it under \`\(.*\) PROGRAM\`$/\1/p" said)
[ -n "$with" ] || fail "no command for the task"
[ -z "$KEPT" ]
run 5 $?
found=$(sed -n 's/^\([a-z-]*\): .*/\1/p' said)
[ "$found" = "$KEPT" ] || fail "still found: $found"

touch busy
load &
load=$!
$with "$STEADY_TESTS_BIN/declare" level=0 "read=/dev/mmcblk0,4,$((LENGTH_S * 1000000 / PERIOD_US)),$PERIOD_US" >task &
task=$!
under="timeout --preserve-status $LENGTH_S"
run 6 0
under=
wait $task || fail "the task failed"
rm busy
wait $load
echo "$FIRST: $(sed -n 's/^max_ns //p' task) ns of $bound_ns"
[ ! -e /tmp/data/late/late-1 ] || fail "a request was late"
umount /tmp/data
run 7 0
[ "$(cat $queue/scheduler)" = "$before" ] || fail "the scheduler is not as before: $(cat $queue/scheduler)"
[ -z "$(find /etc -name '*steadyio*')" ] || fail "files are left: $(find /etc -name '*steadyio*')"
