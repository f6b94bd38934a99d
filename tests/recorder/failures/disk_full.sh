#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a disk filled by others does not affect a recording, because its segments are preallocated; without room for them it does not start
# DEVICE: test-cut
# FLAVOUR: base
. "$STEADY_FAILURES/recorder.sh"

make_filesystem
record --total 1500KiB &
sleep 0.5
dd if=/dev/zero of=/run/mnt/filler bs=64k 2>/dev/null && fail "the disk does not fill"
wait $! || fail "status $?: $(cat record.err)"
expect "durable" "$(total durable)" 1500
expect "found" "$(found)" 1500

RECORDING=/run/mnt/another
record --total 10KiB && fail "recorded without room"
grep -q "bytes more, but only" record.err || fail "says: $(cat record.err)"
[ ! -e result.json ] || fail "there is a result: $(cat result.json)"
rm /run/mnt/filler
record --total 10KiB || fail "with room again: $(cat record.err)"
expect "found with room again" "$(found)" 10
