#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a wait for a command that the driver began late is counted as dispatch, not as the device's
# DEVICE: none
# MODULES: null_blk nr_devices=0
. "$STEADY_TESTS/lib.sh"
. "$STEADY_TESTS/lib_declared.sh"
set -e

# The driver rejects what is above 40 MB/s, and tries again up to 20 ms later. Then the device takes
# 200 us.
null_blk_create nullb0 completion_nsec=200000 mbps=40
DECLARED_LIMITS="read 230000 1 write 230000 1"
use_declared nullb0
begin_background nullb0
"$DECLARE" "line=$(task nullb0 0 20000)" level=0 read=/dev/nullb0,4,100,20000 show >"$SCRATCH/out"
end_background
cat "$SCRATCH/out"
expect_at_least "waits for a late start" "$(value over_dispatch <"$SCRATCH/out")" 5
expect "waits for the device" "$(value over_device <"$SCRATCH/out")" 0
expect "waits that are k2's fault" "$(value over_k2 <"$SCRATCH/out")" 0
no_tasks nullb0
k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
