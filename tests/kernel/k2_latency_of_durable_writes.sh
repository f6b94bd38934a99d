#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: latency_* count durable writes and flushes once, at the level of their thread
# DEVICE: none
# MODULES: null_blk nr_devices=0
# COMPAT: request_private.h
. "$STEADY_TESTS/lib.sh"
set -e

null_blk_create nullb0 completion_nsec=1000000 cache_size=1
use_k2 nullb0 1 0
count() {
	knob nullb0 "iosched/latency_$1" | sed -n 's/^count \([0-9]*\) .*/\1/p'
}
write_as() { # $1: ionice's options, then dd's
	options=$1
	shift
	# shellcheck disable=SC2086
	ionice $options dd if=/dev/zero of=/dev/nullb0 bs=4k oflag="$1" count="$2" status=none
}

# Each is a write with FUA and a flush.
write_as "-c 1 -n 2" direct,dsync 5
expect "durable, level 2" "$(count rt2)" 10
write_as "-c 2" direct,dsync 3
expect "durable, best effort" "$(count best_effort)" 6
expect "level 2, as before" "$(count rt2)" 10
ionice -c 1 -n 4 sync -d /dev/nullb0
expect "a flush, level 4" "$(count rt4)" 1
k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
