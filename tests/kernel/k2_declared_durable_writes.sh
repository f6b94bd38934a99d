#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: durable writes of a declared task are jobs, each until its flush has ended, and leave nothing outstanding
# DEVICE: none
# MODULES: null_blk nr_devices=0
# COMPAT: request_private.h
. "$STEADY_TESTS/lib.sh"
. "$STEADY_TESTS/lib_declared.sh"
set -e

# On 6.1 flushes and FUA writes are known only when they have ended.
null_blk_create nullb0 completion_nsec=1000000 cache_size=1
use_declared nullb0
knob nullb0 iosched/device_limits "read 1100000 0 write 1100000 0"
line="dev=$(cat /sys/block/nullb0/dev) level=0 period_us=20000 jitter_us=100 think_us=100 block_us=1200"
begin_background nullb0
"$DECLARE" "line=$line" level=0 write=/dev/nullb0,4,20,20000 show >"$SCRATCH/out"
end_background
cat "$SCRATCH/out"
expect jobs "$(value jobs <"$SCRATCH/out")" 20
expect "early jobs" "$(value early <"$SCRATCH/out")" 0
expect "waits that are k2's fault" "$(value over_k2 <"$SCRATCH/out")" 0
no_tasks nullb0
k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
