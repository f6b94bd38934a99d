#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: latency_* count each request once, by class and level, and those that are later than rt_deadline_us
# DEVICE: none
# MODULES: null_blk nr_devices=0
. "$STEADY_TESTS/lib.sh"
set -e

null_blk_create nullb0 completion_nsec=10000000
use_k2 nullb0 1 4
read_as() { # $1: ionice's options, $2: bytes
	# shellcheck disable=SC2086
	ionice $1 "$STEADY_TESTS_BIN/one_io" aio read /dev/nullb0 0 "$2"
}
latency() {
	knob nullb0 "iosched/latency_$1" | sed 's/sum_ns [0-9]* max_ns [0-9]* //' | tr '\n' ' '
}

knob nullb0 iosched/rt_deadline_us "0 0 0 0 9000 0 0 0"
expect rt_deadline_us "$(knob nullb0 iosched/rt_deadline_us)" "0 0 0 0 9000 0 0 0"
trace_begin k2/k2_late
read_as "-c 1 -n 4" 4096
read_as "-c 1 -n 4" 4096
read_as "-c 1 -n 7" 4096
expect "late, as events" "$(trace_end | sed -n 's/.* 0 level 4 took 10[0-9]* ns deadline 9000000 ns$/late/p' | tr '\n' ' ')" \
	"late late "
knob nullb0 iosched/rt_deadline_us "0 0 0 0 11000 0 0 0"
read_as "-c 1 -n 4" 4096
expect "level 4, each read 10 ms" "$(latency rt4)" "count 3 late 2 10485760:3 "
expect "level 7, without a deadline" "$(latency rt7)" "count 1 late 0 10485760:1 "
expect "level 0" "$(latency rt0)" "count 0 late 0  "

# Two pieces.
read_as "-c 2" 8192
read_as "-c 3" 8192
expect "best effort" "$(latency best_effort)" "count 1 late 0 20971520:1 "
expect "idle" "$(latency idle)" "count 1 late 0 20971520:1 "
expect metadata "$(latency metadata)" "count 0 late 0  "
knob nullb0 iosched/latency_rt4 | grep -Eq '^count 3 sum_ns 30[0-9]{6} max_ns 100[0-9]{5} late 2$' ||
	fail "$(knob nullb0 iosched/latency_rt4)"

expect counts "$(knob nullb0 iosched/counts | tr '\n' ';')" "rt inserted 4 merged 0 dispatched 4 split 0 \
retried 0 deferred 0 completed 4;background inserted 2 merged 0 dispatched 4 split 2 retried 0 deferred 0 completed 2;"
k2_expect_settled nullb0
# A new choice of the scheduler counts from nothing.
knob nullb0 scheduler none
use_k2 nullb0 1 4
expect "after a new choice" "$(latency rt4)" "count 0 late 0  "
knob nullb0 scheduler none
null_blk_remove nullb0
