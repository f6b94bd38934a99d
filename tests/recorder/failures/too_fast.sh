#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a producer faster than the device loses records, each one counted, and records reported durable are there
# DEVICE: s4-emmc-8gb
# FLAVOUR: base
. "$STEADY_FAILURES/recorder.sh"

make_filesystem
# 33 MB/s for a device of 12 MB/s.
SETTINGS="--period 500us --size 16KiB --segments 8 --segment-size 8MiB --unit 512KiB
	--loss-window 500ms --ring 4MiB"
record --total 32MiB
expect "status" $? 3
expect "received" "$(total received)" 2048
expect_at_least "lost because the ring was full" "$(total lost_ring_full)" 500
expect_at_least "durable" "$(total durable)" 700
expect_accounted
expect "found" "$(found)" "$(total durable)"
