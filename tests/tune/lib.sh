# shellcheck shell=sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Shared by the scripts that test_tune.py calls in the guest.

disk=mmcblk0
queue=/sys/block/$disk/queue
# 13 values: at most 4 of them are measured.
values=inflight_max=1,2,3,4,5,6,7,8,9,10,12,14,16

tune() { # $1: name of its report, rest: arguments
	name=$1
	shift
	"$STEADY" tune /dev/$disk "$LOAD" --knob rt_block_us=0 --knob $values --quantile 95 \
		--out "$name.json" "$@" >"$name.txt" 2>"$name.log"
}

knobs() {
	grep -o '\[.*\]' $queue/scheduler
	# Without what k2 counts and learns.
	find $queue/nr_requests $queue/max_sectors_kb $queue/iosched -type f \
		! -name rt_blocked ! -name device_model | sort | xargs head -n 1
}
