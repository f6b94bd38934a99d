#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: background writes leave room in an SSD's buffer for real-time writes, and none is lost
# DEVICE: test-nvme-slow
. "$STEADY_TESTS/lib.sh"
set -e

disk=nvme0n1
pace() {
	awk -v key="$1" '$1 == key { print $2 }' /sys/kernel/debug/block/$disk/sched/pace
}

# p99_ns TEXT: of what rt_reader prints.
p99_ns() {
	echo "$1" | sed 's/.*rt_p99_ns \([0-9]*\).*/\1/'
}

# writes COUNT: real-time writes of 4 KiB every 5 ms next to three threads that write 64 KiB
writes() {
	"$STEADY_TESTS_BIN/rt_reader" /dev/$disk 4 "$1" =5000 64 3 writes
}

use_k2 $disk 32 0
unpaced=$(writes 400)
knob $disk iosched/rt_block_us 440
expect "pace before it is learned" "$(pace pace)" 0
writes 2000
expect_at_least "pace" "$(pace pace)" 1
expect "pace left off for" "$(pace off_ms)" 0
paced=$(writes 400)
echo "without look-ahead $unpaced, paced $paced, $(pace pace) of $(pace 'done') KiB/s"
unpaced_ns=$(p99_ns "$unpaced")
paced_ns=$(p99_ns "$paced")
expect_at_most "p99 of real-time, paced" "$paced_ns" $((unpaced_ns / 2))

# Without real-time it stays as it is, once the window that has begun is over.
background() {
	dd if=/dev/zero of=/dev/$disk bs=64K count=500 oflag=direct status=none
}
background
before=$(pace pace)
background
expect "pace" "$(pace pace)" "$before"
k2_expect_settled $disk
knob $disk scheduler none
