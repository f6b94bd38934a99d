#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: whatever came first, real-time levels are dispatched 0 to 7, then best effort, then idle; FIFO in each
# DEVICE: none
# MODULES: null_blk nr_devices=0
# COMPAT: insert_flags.h
. "$STEADY_TESTS/lib.sh"
set -e

null_blk_create nullb0 completion_nsec=50000000
use_k2 nullb0 1 0
trace_begin k2/k2_dispatch

# read_as CLASS LEVEL PLACE (in 4 KiB)
read_as() {
	ionice -c "$1" -n "$2" dd if=/dev/nullb0 of=/dev/null bs=4k count=1 skip="$3" iflag=direct \
		status=none &
	sleep 0.001
}

# The first goes to the device at once and keeps it for 50 ms.
read_as 2 4 1
read_as 3 0 20
read_as 2 0 30
read_as 1 7 40
read_as 1 5 50
read_as 1 5 60
read_as 1 0 70
read_as 1 2 80
wait
trace_end | sed -n 's/.*k2_dispatch:.* R \([0-9]*\) + 4096 bytes queue \([0-9]*\) .*/\2 \1/p' \
	>"$SCRATCH/order"
printf '%s\n' "9 8" "0 560" "2 640" "5 400" "5 480" "7 320" "9 240" "10 160" >"$SCRATCH/expected"
cmp "$SCRATCH/order" "$SCRATCH/expected" || fail "order: $(tr '\n' ',' <"$SCRATCH/order")"

k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
