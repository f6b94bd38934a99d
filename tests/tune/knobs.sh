#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What becomes of the knobs: measured, interrupted, applied.
set -eu
# shellcheck source=lib.sh
. "$STEADY_TESTS/lib.sh"

values=inflight_max=2,8
# Not the defaults.
echo bfq >$queue/scheduler
echo 3 >$queue/iosched/slice_idle
knobs >before

tune measured --throughput-min 50%
knobs >measured.knobs

tune interrupted --tail-max 50% &
shell=$!
until grep -q '\[k2\]' $queue/scheduler && pgrep fio >/dev/null; do
	sleep 0.01
done
kill -INT "$(pgrep -x steady)"
status=0
wait $shell || status=$?
echo $status >interrupted.status
pgrep fio >left-over || true
knobs >interrupted.knobs

tune applied --throughput-min 50% --apply
knobs >applied.knobs
# Nothing is to be restored behind it.
"$STEADY" bench --device /dev/$disk "$LOAD" >/dev/null 2>next.log
knobs >next.knobs
