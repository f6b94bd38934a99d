#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a real-time request that takes longer than alone and rt_block_us is counted, with its cause
# DEVICE: none
# MODULES: null_blk nr_devices=0
. "$STEADY_TESTS/lib.sh"
set -e

# Each command takes 10 ms, whatever its size: 2.5 times as long as real-time may wait.
null_blk_create nullb0 completion_nsec=10000000
use_k2 nullb0 1 0
knob nullb0 iosched/rt_block_us 4000
knob nullb0 iosched/device_model "read 4 10000 100"

# read_as LEVEL COUNT
read_as() {
	ionice -c 1 -n "$1" dd if=/dev/nullb0 of=/dev/null bs=4k count="$2" iflag=direct status=none
}
excess() {
	knob nullb0 iosched/rt_excess | sed 's/ max_ns.*//'
}

read_as 0 3
expect "alone" "$(excess)" "stall 0 lane 0 unguarded 0 early 0 background 0 lower 0 rt 0 device 0"

# The smallest piece takes longer than real-time may wait.
read_as 0 30 &
sleep 0.002
dd if=/dev/nullb0 of=/dev/null bs=4k count=1 iflag=direct status=none
wait
expect "a device that is too slow" "$(excess)" \
	"stall 0 lane 0 unguarded 0 early 0 background 1 lower 0 rt 0 device 0"

# The first request of a process finds a command that nobody was guarded against.
sleep 2
dd if=/dev/nullb0 of=/dev/null bs=4k count=1 iflag=direct status=none &
sleep 0.002
read_as 0 1
wait
expect "a first request" "$(excess)" \
	"stall 0 lane 0 unguarded 1 early 0 background 1 lower 0 rt 0 device 0"

# Two processes of one level, then of two.
read_as 3 1 &
sleep 0.002
read_as 3 1
wait
expect "another of its level" "$(excess)" \
	"stall 0 lane 0 unguarded 1 early 0 background 1 lower 0 rt 1 device 0"
read_as 6 1 &
sleep 0.002
read_as 3 1
wait
expect "a lower level" "$(excess)" \
	"stall 0 lane 0 unguarded 1 early 0 background 1 lower 1 rt 1 device 0"
knob nullb0 iosched/rt_excess | grep -q 'max_ns [1-9]' || fail "$(knob nullb0 iosched/rt_excess)"

k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
