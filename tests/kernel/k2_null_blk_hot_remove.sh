#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a disk powered off under load, again and again: all I/O ends and k2 is removed cleanly
# DEVICE: none
# MODULES: null_blk nr_devices=0
. "$STEADY_TESTS/lib.sh"
set -e

for split_kib in 0 4 64; do
	null_blk_create nullb0 completion_nsec=100000
	use_k2 nullb0 3 $split_kib
	"$STEADY_TESTS_BIN/io_stream" /dev/nullb0 jobs=4 rt_jobs=1 ios=100000 region_kib=2048 \
		largest_kib=256 hint_percent=20 errors=2 >"$SCRATCH/streams" &
	streams=$!
	sleep 0.0$((20 + split_kib / 4))
	echo 0 >"$CONFIGFS/nullb/nullb0/power"
	wait $streams || fail "$(cat "$SCRATCH/streams")"
	expect "processes that saw the removal" "$(grep -vc "failed 0" "$SCRATCH/streams")" 4
	expect "module users" "$(cat /sys/module/k2/refcnt)" 0
	null_blk_remove nullb0
done
rmmod k2
insmod "$STEADY_MODULE_K2"
