#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: real-time FUA writes and flushes are a stream that background is cut for, until it is silent
# DEVICE: none
# MODULES: null_blk nr_devices=0
# On 6.1 neither is shown to a scheduler before it ends. On 6.12 flushes are not, and then their class
# is no longer known.
. "$STEADY_TESTS/lib.sh"
set -e

# cache_size: a volatile write cache, so that flushes and FUA reach the driver.
null_blk_create nullb0 completion_nsec=1000000 cache_size=1
knob nullb0 scheduler k2
knob nullb0 iosched/inflight_max 1
knob nullb0 iosched/rt_idle_ms 100

# cuts_after COMMAND...: of two background writes, after a real-time process has run
cuts_after() {
	ionice -c 1 -n 0 "$@"
	before=$(k2_count nullb0 background split)
	dd if=/dev/zero of=/dev/nullb0 bs=256k count=2 oflag=direct status=none
	echo $(($(k2_count nullb0 background split) - before))
}

expect_at_least "requests cut after FUA writes" \
	"$(cuts_after dd if=/dev/zero of=/dev/nullb0 bs=4k count=2 oflag=direct,dsync status=none)" 1
sleep 0.2
expect "requests cut after a silence" "$(cuts_after sleep 0)" 0
if [ "$STEADY_KERNEL" = 6.1 ]; then
	expect_at_least "requests cut after a flush" "$(cuts_after sync -d /dev/nullb0)" 1
fi

k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
