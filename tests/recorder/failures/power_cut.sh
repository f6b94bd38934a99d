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
expect_kept "after the cut"
