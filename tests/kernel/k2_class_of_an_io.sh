#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: an I/O's own priority (aio_reqprio, io_uring's ioprio) decides its queue, not the task's
# DEVICE: none
# MODULES: null_blk nr_devices=0
. "$STEADY_TESTS/lib.sh"
set -e

null_blk_create nullb0 completion_nsec=10000
use_k2 nullb0 1 4
one() {
	"$STEADY_TESTS_BIN/one_io" "$1" read /dev/nullb0 0 8192 ioprio="$2"
}
cut="R 0 4096 9;R 8 4096 9;"
cut_idle="R 0 4096 10;R 8 4096 10;"
for engine in aio uring; do
	expect_dispatched "R 0 8192 0;" one $engine 1:0
	expect_dispatched "R 0 8192 7;" one $engine 1:7
	expect_dispatched "$cut" one $engine 2:0
	expect_dispatched "$cut_idle" one $engine 3:0
done

# Against the task's: real-time tasks can send background I/O, by priority or by policy.
hinted() {
	"$@" "$STEADY_TESTS_BIN/one_io" aio read /dev/nullb0 0 8192 ioprio=3:0
}
expect_dispatched "$cut_idle" hinted ionice -c 1 -n 0
expect_dispatched "$cut_idle" hinted chrt -f 10
expect_dispatched "R 0 8192 2;" ionice -c 3 "$STEADY_TESTS_BIN/one_io" uring read /dev/nullb0 0 8192 ioprio=1:2

k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
