#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What becomes of the knobs: interrupted, applied.
set -eu
# shellcheck source=lib.sh
. "$STEADY_TESTS/lib.sh"

status_of interrupted 2,8 --tail-max 1ms &
shell=$!
until grep -q '\[k2\]' $queue/scheduler && pgrep fio >/dev/null; do
	sleep 0.1
done
kill -INT "$(pgrep -x steady)"
wait $shell
pgrep fio >left-over || true
knobs >interrupted.knobs

tune applied 2,8 --throughput-min 1MiB --apply
knobs >applied.knobs
# Nothing is to be restored behind it.
"$STEADY" with --device /dev/$disk --knob queue/nomerges=2 -- true 2>next.log
knobs >next.knobs
