# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=sh
# Helpers for the tests of declared tasks; source after lib.sh.

# The limits of test-plain: its times, and 30 us for the status and the host.
DECLARED_LIMITS="read 130000 4000 write 230000 8000"
DECLARED_BLOCK_US=440

# Who sources this uses it.
# shellcheck disable=SC2034
DECLARE=$STEADY_TESTS_BIN/declare

# use_declared DISK: k2 with limits, and without look-ahead, so that only tasks hold background back.
use_declared() {
	use_k2 "$1" 1 0
	knob "$1" iosched/device_limits "$DECLARED_LIMITS"
}

# task DISK LEVEL PERIOD_US [KEY=VALUE]...: the line that declares it
task() {
	disk=$1 level=$2 period_us=$3
	shift 3
	echo "dev=$(cat "/sys/block/$disk/dev") level=$level period_us=$period_us" \
		"block_us=$DECLARED_BLOCK_US jitter_us=100 think_us=100 $*"
}

# value KEY: of the task that the input shows
value() {
	sed -n "s/.* $1=\([^ ]*\).*/\1/p"
}

# max_ns_of COMMAND...: what `declare` printed last
max_ns_of() {
	"$@" | sed -n 's/^max_ns //p'
}

# begin_background DISK: whole requests of 512 KiB, until end_background.
begin_background() {
	touch "$SCRATCH/background"
	(
		while [ -e "$SCRATCH/background" ]; do
			dd "if=/dev/$1" of=/dev/null bs=512K count=40 iflag=direct status=none
		done
	) &
	background=$!
	sleep 0.01
}

end_background() {
	rm "$SCRATCH/background"
	wait "$background"
}

splits() {
	k2_count "$1" background split
}

# background_splits DISK: how many of 20 requests of 512 KiB are cut, now
background_splits() {
	before=$(splits "$1")
	dd "if=/dev/$1" of=/dev/null bs=512K count=20 iflag=direct status=none
	echo $(($(splits "$1") - before))
}

# no_tasks DISK: nothing guards it, and background is whole again.
no_tasks() {
	expect "tasks of $1" "$(cat "/sys/block/$1/queue/iosched/rt_declared")" ""
	expect "background cut without a task" "$(background_splits "$1")" 0
}
