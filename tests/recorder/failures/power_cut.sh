#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a card that loses power under a recording ends it with an error and a correct account
# DEVICE: test-cut
# FLAVOUR: base
. "$STEADY_FAILURES/recorder.sh"

make_filesystem
record --total 3000KiB &
sleep 0.8
emmc_power_cut
wait $!
expect "status" $? 5
expect_at_most "durable" "$(total durable)" 800
expect_accounted
durable=$(total durable)
umount /run/mnt || fail "umount"
emmc_unbind
emmc_bind
mount_card
expect_at_least "found" "$(found)" "$durable"
