#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: cache flushes that fail in the middle of a recording cost nothing: what they should have covered is written again
# DEVICE: test-cut
# FLAVOUR: base
. "$STEADY_FAILURES/recorder.sh"

# A card in a file, so that it can be loaded again with failing flushes.
card="capacity_mib=64 cache_kib=1024 path=$PWD/card.img"
# shellcheck disable=SC2086
emmc_reload $card
make_filesystem
record --total 2500KiB || fail "status $?: $(cat record.err)"
kept=$(found)
umount /run/mnt
# shellcheck disable=SC2086
emmc_reload $card "fault=flush:error:op:20,flush:error:op:21,flush:error:op:30"
mount_card
record --total 1000KiB
expect "status" $? 0
expect_at_least "failures" "$(pool_meter failures)" 2
grep -q "the device works again" record.err || fail "says: $(cat record.err)"
expect "durable" "$(total durable)" 1000
# Three segments of less than 512 records were begun over.
expect_at_least "found" "$(found)" $((kept - 3 * 512 + 1000))
