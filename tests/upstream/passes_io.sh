#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: after each patch of the series k2 can be chosen, keeps data and loses no request
# DEVICE: none
# MODULES: null_blk nr_devices=0
# shellcheck source=../kernel/lib.sh
. "$STEADY_TESTS/lib.sh"
# shellcheck source=../kernel/lib_declared.sh
. "$STEADY_TESTS/lib_declared.sh"
set -e

# set_if_there KNOB VALUE: earlier patches lack some.
set_if_there() {
	[ ! -e "/sys/block/nullb0/queue/iosched/$1" ] || knob nullb0 "iosched/$1" "$2"
}

for split_kib in 0 4; do
	null_blk_create nullb0 completion_nsec=20000
	knob nullb0 scheduler k2
	knob nullb0 iosched/inflight_max 2
	set_if_there split_kib "$split_kib"
	"$STEADY_TESTS_BIN/io_stream" /dev/nullb0 seed=1 jobs=4 rt_jobs=1 ios=100 largest_kib=160 \
		region_kib=2048 hint_percent=20 sync_percent=5 || fail "split_kib $split_kib"
	expect_at_least "real-time" "$(k2_count nullb0 rt completed)" 50
	if [ "$split_kib" != 0 ] && [ -e /sys/block/nullb0/queue/iosched/split_kib ]; then
		expect_at_least "split" "$(k2_count nullb0 background split)" 40
	fi
	k2_expect_settled nullb0
	knob nullb0 scheduler none
	null_blk_remove nullb0
done
if [ -e /dev/k2 ]; then
	null_blk_create nullb0 completion_nsec=200000
	knob nullb0 scheduler k2
	knob nullb0 iosched/inflight_max 1
	set_if_there rt_block_us 0
	knob nullb0 iosched/device_limits "read 230000 4000 write 230000 4000"
	begin_background nullb0
	"$DECLARE" "line=$(task nullb0 0 10000)" level=0 read=/dev/nullb0,4,100,10000 show \
		>"$SCRATCH/task"
	end_background
	expect "jobs" "$(value jobs <"$SCRATCH/task")" 100
	expect "waits that are k2's fault" "$(value over_k2 <"$SCRATCH/task")" 0
	expect_at_least "cut for the task" "$(splits nullb0)" 20
	no_tasks nullb0
	k2_expect_settled nullb0
	knob nullb0 scheduler none
	null_blk_remove nullb0
	echo "a declared task had its bound"
fi
if [ -e /sys/module/k2/refcnt ]; then
	echo "k2 is a module"
else
	echo "k2 is built in"
fi
