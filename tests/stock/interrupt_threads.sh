#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# With PREEMPT_RT a disk's interrupt is a thread under SCHED_FIFO 50. A task above it that computes
# delays the end of a read; `steady doctor` says so, and with its fix the read ends.
. "$STEADY_STOCK/lib.sh"
set -e

disk=${STEADY_DISKS%% *}
case $(uname -v) in
*PREEMPT_RT*) ;;
*) fail "not a PREEMPT_RT kernel: $(uname -v)" ;;
esac
# Else the kernel stops a real-time task after 950 ms, and the read ends then.
echo -1 >/proc/sys/kernel/sched_rt_runtime_us
knob "${disk#/dev/}" scheduler k2

ends_in_time() {
	status=0
	"$@" "$STEADY_TESTS_BIN/read_while_computing" "$disk" 1 || status=$?
	[ $status = 0 ] || [ $status = 3 ] || fail "read_while_computing: $status"
	[ $status = 0 ]
}

! ends_in_time env || fail "nothing delays a read"
chrt --fifo 60 sleep 1000 &
"$STEADY" doctor "$disk" >findings || true
kill $!
grep -q "^realtime-tasks: sleep .*SCHED_FIFO 50" findings || fail "$(cat findings)"
fix=$(sed -n 's/^ *\(steady with .*\) -- PROGRAM$/\1/p' findings)
expect "the fix" "$fix" "steady with --device $disk --kworkers-fifo 61"
# shellcheck disable=SC2086 # Words.
ends_in_time "$STEADY" ${fix#steady} -- || fail "the read still waits for the task"
for stat in /proc/[0-9]*/stat; do
	case $(cat "$stat" 2>/dev/null) in
	*"(irq/"*) expect "$stat" "$(cut -d' ' -f40 "$stat")" 50 ;;
	esac
done
