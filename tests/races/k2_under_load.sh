#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# On each disk, under load: two write all knobs, one reads all that k2 shows, one switches schedulers
# and changes nr_requests. Data are right, and every request is accounted for.
. "$STEADY_RACES/lib.sh"
set -e

write_knob() { # NAME
	choose 64
	value=$chosen
	choose 6
	case $chosen in
	0) knob "$1" iosched/inflight_max $((value % 8 + 1)) ;;
	1) knob "$1" iosched/split_kib $((value % 4 * 8)) ;;
	2) knob "$1" iosched/background_wait_ms_max $((value % 3)) ;;
	3) knob "$1" iosched/rt_block_us $((value % 3 * 440)) ;;
	4) knob "$1" iosched/rt_idle_ms $((value % 2 * 100)) ;;
	5) knob "$1" iosched/device_model "write 512 $((value * 100 + 1000)) 200" ;;
	esac
}

read_all() { # NAME
	cat "/sys/kernel/debug/block/$1/sched/"* "/sys/block/$1/queue/iosched/"*
}

switch() { # NAME
	choose 4
	case $chosen in
	0) knob "$1" scheduler none ;;
	1) knob "$1" scheduler mq-deadline ;;
	*) choose 60 && knob "$1" nr_requests $((chosen + 4)) ;;
	esac
	sleep 0.2
	knob "$1" scheduler k2
	sleep 0.5
}

for disk in $STEADY_DISKS; do
	name=${disk#/dev/}
	use_k2 "$name" 2 16
	zero "$disk"
	rm -f "$SCRATCH/ended"
	beside 1 write_knob "$name"
	beside 2 write_knob "$name"
	beside 3 read_all "$name"
	beside 4 switch "$name"
	result=right
	stream "$disk" ios="$STEADY_IOS" seed="${STEADY_SEED:-1}" || result=wrong
	touch "$SCRATCH/ended"
	wait
	expect "$name: data" $result right
	knob "$name" scheduler k2
	k2_expect_settled "$name"
	knob "$name" scheduler none
	echo "$name: data right"
done
rmmod k2
insmod "$STEADY_MODULE_K2"
