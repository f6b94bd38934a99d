#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: an NVMe SSD never has more requests than inflight_max, and as many where there are more
# DEVICE: test-nvme
. "$STEADY_TESTS/lib.sh"
set -e

knob nvme0n1 nomerges 2
# most_of OPERATION: the most commands that were with the drive at once.
most_of() {
	echo 0 >/sys/kernel/debug/steady_nvme/inflight_max
	"$STEADY_TESTS_BIN/one_io" aio "$1" /dev/nvme0n1 0 4096 count=32 | sort | uniq -c |
		grep -q '^ *32 result 4096$' || fail "$1: I/Os"
	cat /sys/kernel/debug/steady_nvme/inflight_max
}

for bound in 1 2 8; do
	use_k2 nvme0n1 $bound 0
	for operation in write read; do
		expect "most in flight of ${operation}s" "$(most_of $operation)" $bound
	done
done
k2_expect_settled nvme0n1
knob nvme0n1 scheduler none
expect "most in flight without a scheduler" "$(most_of read)" 32
