#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: k2 comes and goes, with its module and with the card, while lanes are used next to mmcblk
# DEVICE: test-plain
# MODULES: chario
# COMPAT: claim_disk.h unfreeze_queue.h
. "$STEADY_TESTS/lib.sh"

lane_of() {
	echo mmcblk0p2 >$CHARIO/lane && echo mmcblk0p3 >$CHARIO/lane
}

# Transfers of all kinds and levels, some of which a killed process leaves, and both classes of
# mmcblk, synchronous writes among them.
users() {
	touch /run/going
	pids=
	for node in /dev/chardisk0 /dev/chardisk1; do
		while [ -e /run/going ]; do
			timeout -s KILL 0.2 "$STEADY_TESTS_BIN/chardisk_stress" $node threads=3 transfers=50 \
				>/dev/null 2>&1
			sleep 0.01
		done &
		pids="$pids $!"
	done
	while [ -e /run/going ]; do
		ionice -c 1 -n 0 dd if=/dev/mmcblk0p1 of=/dev/null bs=4K count=40 iflag=direct 2>/dev/null
		sleep 0.002
	done &
	pids="$pids $!"
	while [ -e /run/going ]; do
		dd if=/dev/mmcblk0p1 of=/dev/null bs=512K count=8 iflag=direct 2>/dev/null
		dd if=/dev/zero of=/dev/mmcblk0p1 conv=nocreat bs=4K count=4 oflag=direct,dsync 2>/dev/null
		sleep 0.002
	done &
	pids="$pids $!"
}

users_end() {
	rm /run/going
	# shellcheck disable=SC2086 # Several numbers.
	wait $pids
}

# A lane may be asking just now who keeps the queue.
unload_k2() {
	for _ in $(seq 10); do
		rmmod k2 2>/run/said && return
		sleep 0.001
	done
	fail "rmmod: $(cat /run/said)"
}

expect_alive() {
	dd if=/dev/mmcblk0p1 of=/dev/null bs=64K count=1 iflag=direct 2>/dev/null || fail "$1: mmcblk"
	for node in /dev/chardisk0 /dev/chardisk1; do
		dd if=$node of=/dev/null bs=64K count=1 2>/dev/null || fail "$1: $node"
	done
}

for queue in 0 8; do
	echo "queue depth $queue"
	knob mmcblk0 scheduler none
	emmc_reload capacity_mib=64 queue_depth=$queue cache_kib=64
	emmc_partition 2048 32768 34816 32768 67584 32768
	knob mmcblk0 scheduler k2
	lane_of || fail "lanes"
	users
	for round in 1 2; do
		echo "round $round"
		sleep 0.05
		knob mmcblk0 scheduler none
		expect_alive "round $round: none"
		unload_k2
		sleep 0.05
		expect_alive "round $round: without k2"
		insmod "$STEADY_MODULE_K2" || fail "insmod k2"
		knob mmcblk0 scheduler k2
		rmmod k2 2>/dev/null && fail "round $round: k2 was unloaded in use"
		knob mmcblk0 nr_requests $((16 + round))
		knob mmcblk0 iosched/inflight_max $round
		knob mmcblk0 iosched/background_wait_ms_max $((round * 5))
		sleep 0.05
		expect_alive "round $round: k2"
	done
	echo mmcblk0p3 >$CHARIO/end_lane || fail "end"
	sleep 0.02
	echo mmcblk0p3 >$CHARIO/lane || fail "again"
	sleep 0.02
	expect_alive "again"
	users_end
	expect_at_least "waits of level 0 for lanes" \
		"$(sed -n 's/^rt0 count \([0-9]*\).*/\1/p' /sys/block/mmcblk0/queue/iosched/lane_blocked)" 1
	k2_expect_settled mmcblk0

	# The card goes, and its mmcblk, under both.
	for way in pull unbind; do
		echo "$way"
		users
		sleep 0.05
		case $way in
		pull) emmc_unbind ;;
		unbind) echo mmc0:0001 >/sys/bus/mmc/drivers/mmcblk/unbind ;;
		esac
		users_end
		[ -e $CHARDISK_NODE ] && fail "$way: the node stays"
		expect "$way: module users" "$(cat /sys/module/k2/refcnt)" 0
		case $way in
		pull) emmc_bind ;;
		unbind) echo mmc0:0001 >/sys/bus/mmc/drivers/mmcblk/bind ;;
		esac
		for _ in $(seq 100); do
			[ -b /dev/mmcblk0p3 ] && break
			sleep 0.01
		done
		knob mmcblk0 scheduler k2
		lane_of || fail "$way: lanes"
	done
	echo mmcblk0p2 >$CHARIO/end_lane
	echo mmcblk0p3 >$CHARIO/end_lane
done
knob mmcblk0 scheduler none
rmmod chario || fail "rmmod chario"
expect "module users" "$(cat /sys/module/k2/refcnt)" 0
insmod "$STEADY_MODULE_CHARIO" || fail "insmod"
