#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a disk with a declared task is removed under load; the task says so, and a disk that takes its number is not guarded
# DEVICE: none
# MODULES: null_blk nr_devices=0
. "$STEADY_TESTS/lib.sh"
. "$STEADY_TESTS/lib_declared.sh"
set -e

disk_off() {
	echo 0 >"$CONFIGFS/nullb/nullb0/power"
}

null_blk_create nullb0 completion_nsec=200000
use_declared nullb0
line=$(task nullb0 0 10000)
"$DECLARE" "line=$line" sleep=2000 show >"$SCRATCH/out" &
pid=$!
sleep 0.1
"$STEADY_TESTS_BIN/io_stream" /dev/nullb0 jobs=4 rt_jobs=1 ios=100000 region_kib=2048 \
	largest_kib=256 hint_percent=20 errors=2 >"$SCRATCH/streams" &
streams=$!
sleep 0.05
expect_at_least "split before" "$(splits nullb0)" 20
disk_off
wait $streams || fail "$(cat "$SCRATCH/streams")"
null_blk_remove nullb0
null_blk_create nullb0 completion_nsec=200000
expect "the disk's number" "dev=$(cat /sys/block/nullb0/dev)" "${line%% *}"
knob nullb0 scheduler k2
knob nullb0 iosched/rt_block_us 0
expect "requests cut on the new disk" "$(background_splits nullb0)" 0
wait $pid
expect state "$(value state <"$SCRATCH/out")" no-limits
expect interrupted "$(value interrupted <"$SCRATCH/out")" 1
no_tasks nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
