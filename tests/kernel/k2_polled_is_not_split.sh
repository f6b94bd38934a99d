#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: polled I/O passes whole and completes, also next to background in pieces
# DEVICE: none
# MODULES: null_blk nr_devices=0 poll_queues=1
. "$STEADY_TESTS/lib.sh"
set -e

null_blk_create nullb0 completion_nsec=10000 poll_queues=1
expect "io_poll" "$(knob nullb0 io_poll)" 1
use_k2 nullb0 4 4
polled() {
	"$STEADY_TESTS_BIN/one_io" uring "$1" /dev/nullb0 8388608 65536 poll=1 count="$2"
}
expect_dispatched "R 16384 65536 9;" polled read 1
expect_dispatched "W 16384 65536 9;" polled write 1
"$STEADY_TESTS_BIN/one_io" uring read /dev/nullb0 65536 65536 >"$SCRATCH/unpolled"
expect "split of the unpolled" "$(k2_count nullb0 background split)" 15

"$STEADY_TESTS_BIN/io_stream" /dev/nullb0 jobs=2 rt_jobs=1 ios=60 region_kib=2048 largest_kib=128 &
stream=$!
# Behind the stream's regions, so that it finds its own data.
for _ in 1 2 3 4 5; do
	polled write 4 >"$SCRATCH/polled"
	expect "polled" "$(sort -u "$SCRATCH/polled")" "result 65536"
done
wait $stream

k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
