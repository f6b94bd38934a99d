#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: k2 cannot be unloaded while a disk uses it, and leaves nothing behind afterwards
# DEVICE: none
# MODULES: null_blk nr_devices=0
. "$STEADY_TESTS/lib.sh"
set -e

null_blk_create nullb0 completion_nsec=10000
use_k2 nullb0 1 4
dd if=/dev/nullb0 of=/dev/null bs=64k count=4 iflag=direct status=none
if rmmod k2 2>"$SCRATCH/error"; then
	fail "k2 was unloaded in use"
fi
grep -q "in use" "$SCRATCH/error" || fail "unexpected: $(cat "$SCRATCH/error")"
dd if=/dev/nullb0 of=/dev/null bs=64k count=4 iflag=direct status=none
expect "module users" "$(cat /sys/module/k2/refcnt)" 1
knob nullb0 scheduler none
expect "module users" "$(cat /sys/module/k2/refcnt)" 0
null_blk_remove nullb0
