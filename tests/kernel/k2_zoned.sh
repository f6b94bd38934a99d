#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a zoned disk refuses k2 (6.1), or its writes pass whole and in order (later kernels)
# DEVICE: none
# MODULES: null_blk nr_devices=0
. "$STEADY_TESTS/lib.sh"
set -e

null_blk_create nullb0 completion_nsec=20000 zoned=1 zone_size=4
expect "zoned" "$(knob nullb0 zoned)" host-managed
if ! knob nullb0 scheduler k2 2>"$SCRATCH/error"; then
	# The kernel knows that k2 does not keep the order of writes to a zone.
	case $(knob nullb0 scheduler) in *k2*) fail "k2 is offered, and refused" ;; esac
	expect "scheduler" "$(knob nullb0 scheduler)" "[mq-deadline] none"
	null_blk_remove nullb0
	exit 0
fi

use_k2 nullb0 2 4
pattern zoned 4194304 >"$SCRATCH/pattern"
write_zone() {
	dd if="$SCRATCH/pattern" of=/dev/nullb0 bs=256k count=16 seek=16 oflag=direct status=none
}
dispatched write_zone >"$SCRATCH/lines"
expect "writes" "$(grep -c '^W [0-9]* 262144 9$' "$SCRATCH/lines")" 16
dd if=/dev/nullb0 bs=256k count=16 skip=16 iflag=direct status=none | cmp - "$SCRATCH/pattern"
# Reads are split.
expect "split" "$(k2_count nullb0 background split)" $((16 * 63))
k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
