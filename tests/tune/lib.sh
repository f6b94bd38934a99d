# shellcheck shell=sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Shared by the scripts that test_tune.py calls in the guest.

disk=mmcblk0
queue=/sys/block/$disk/queue
# Not the defaults.
echo bfq >$queue/scheduler
echo 3 >$queue/iosched/slice_idle

tune() { # $1: name of its report, $2: values of inflight_max, rest: arguments
	name=$1
	values=$2
	shift 2
	"$STEADY" tune /dev/$disk "$LOAD" --knob rt_block_us=0 --knob "inflight_max=$values" \
		--quantile 90 --out "$name.json" "$@" >"$name.txt" 2>"$name.log"
}

status_of() { # $1: as of tune, which may fail; the status goes to a file
	status=0
	tune "$@" || status=$?
	echo $status >"$1.status"
}

knobs() {
	grep -o '\[.*\]' $queue/scheduler
	# Without what k2 counts and learns.
	find $queue/nr_requests $queue/max_sectors_kb $queue/iosched -type f \
		! -name rt_blocked ! -name device_model ! -name counts \
		! -name 'latency_*' | sort | xargs head -n 1
}

knobs >before
