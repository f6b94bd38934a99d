#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a piece that times out ends its request, and the device is used again
# DEVICE: none
# FLAVOUR: debug
# MODULES: null_blk nr_devices=0 timeout=100,100,0,-1
. "$STEADY_TESTS/lib.sh"
set -e

# Every hundredth request is never completed by the device.
null_blk_create nullb0 completion_nsec=10000
use_k2 nullb0 1 4
knob nullb0 io_timeout 500
failures=0
for place in 0 1 2 3; do
	dd if=/dev/nullb0 of=/dev/null bs=512k count=1 skip=$place iflag=direct status=none \
		2>"$SCRATCH/error" || {
		grep -q "timed out" "$SCRATCH/error" || fail "unexpected: $(cat "$SCRATCH/error")"
		failures=$((failures + 1))
	}
done
expect_at_least "reads that timed out" $failures 2
dd if=/dev/nullb0 of=/dev/null bs=64k count=1 iflag=direct status=none || fail "no I/O afterwards"

k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
