#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: setting the wall clock forward and back neither stops a recording nor loses or delays anything
# DEVICE: test-cut
# FLAVOUR: base
. "$STEADY_FAILURES/recorder.sh"

make_filesystem
record --total 1500KiB &
sleep 0.3
date -s "2027-06-01" >/dev/null
sleep 0.3
date -s "2001-01-01" >/dev/null
wait $! || fail "status $?: $(cat record.err)"
expect "durable" "$(total durable)" 1500
expect "found" "$(found)" 1500
expect "syncs beyond the loss window" "$(pool_meter window_exceeded)" 0
