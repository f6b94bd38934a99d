#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a removed device ends the recording with an error and a correct account; durable records are there when it is back
# DEVICE: test-cut
# FLAVOUR: base
. "$STEADY_FAILURES/recorder.sh"

make_filesystem
record --total 3000KiB &
sleep 0.8
emmc_unbind
wait $!
expect "status" $? 5
[ -s record.err ] || fail "says nothing"
expect_at_least "durable" "$(total durable)" 600
expect_at_most "durable" "$(total durable)" 800
expect_at_least "lost" "$(lost)" 2000
expect_accounted
durable=$(total durable)
umount /run/mnt || fail "umount"
emmc_bind
mount_card
expect_at_least "found" "$(found)" "$durable"
