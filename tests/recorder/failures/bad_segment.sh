#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a segment that cannot be written is abandoned: recording continues in the next, and the loss is counted
# DEVICE: test-cut
# FLAVOUR: base
. "$STEADY_FAILURES/recorder.sh"

# A card in a file, so that it can be loaded again with bad sectors.
card="capacity_mib=64 cache_kib=1024 path=$PWD/card.img"
# shellcheck disable=SC2086
emmc_reload $card
make_filesystem
record --total 1KiB || fail "making the segments: $(cat record.err)"
# The third segment, from its second block on.
third=$RECORDING/segment-00002.unused
block=$(filefrag -b4096 -v "$third" | awk '$1 == "0:" { print $4 + 0 }')
[ "$block" -gt 0 ] || fail "where is the segment? $(filefrag -v "$third")"
umount /run/mnt
# shellcheck disable=SC2086
emmc_reload $card "fault=write:error:sectors:$((block * 8 + 200))-$((block * 8 + 900))"
mount_card
record --total 1500KiB
expect "status" $? 3
expect_at_least "segments given up" "$(pool_meter failed_segments)" 1
expect_at_least "lost" "$(lost)" 1
expect_at_most "lost" "$(lost)" 100
expect_accounted
# The abandoned segment may hold records that were never reported durable.
expect_at_least "found" "$(found)" "$(total durable)"
