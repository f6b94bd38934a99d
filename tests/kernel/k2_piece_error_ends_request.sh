#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: an error in a piece ends the whole request with it; the requests behind it continue
# DEVICE: none
# MODULES: null_blk nr_devices=0
# STOCK: yes
# COMPAT: request_private.h
. "$STEADY_TESTS/lib.sh"
set -e

null_blk_create nullb0 completion_nsec=1000000
use_k2 nullb0 1 4
# The tenth piece of the first 512 KiB.
echo +72-79 >"$CONFIGFS/nullb/nullb0/badblocks"

dd if=/dev/nullb0 of=/dev/null bs=512k count=1 iflag=direct status=none 2>"$SCRATCH/error" &
failing=$!
sleep 0.002
dd if=/dev/nullb0 of=/dev/null bs=512k count=1 skip=1 iflag=direct status=none &
waiting=$!
ionice -c 1 dd if=/dev/nullb0 of=/dev/null bs=64k count=1 skip=4 iflag=direct status=none ||
	fail "the real-time read next to it failed"

if wait $failing; then
	fail "a read of a bad sector succeeded"
fi
grep -q "Input/output error" "$SCRATCH/error" || fail "unexpected: $(cat "$SCRATCH/error")"
wait $waiting || fail "the read that waited behind it failed"
# 10 pieces of the one, of which 9 were followed by a rest; 128 and 127 of the other.
expect "dispatched" "$(k2_count nullb0 background dispatched)" 138
expect "split" "$(k2_count nullb0 background split)" 136
k2_expect_settled nullb0

# Writes as well, and the last piece.
echo +1016-1023 >"$CONFIGFS/nullb/nullb0/badblocks"
for place in 0 1016; do
	if dd if=/dev/zero of=/dev/nullb0 bs=512k count=1 oflag=direct status=none \
		2>"$SCRATCH/error"; then
		fail "a write of a bad sector succeeded"
	fi
	echo "-72-79" >"$CONFIGFS/nullb/nullb0/badblocks"
	echo "first bad sector left: $place"
done
k2_expect_settled nullb0
expect "in flight in the statistics" "$(awk '{ print $9 }' /sys/block/nullb0/stat)" 0
knob nullb0 scheduler none
null_blk_remove nullb0
