#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: through the MMC driver, each piece passes the scheduler and the data is right
# DEVICE: test-plain
. "$STEADY_TESTS/lib.sh"
set -e

disk=${STEADY_DEVICE#/dev/}
use_k2 "$disk" 1 4
io="$STEADY_TESTS_BIN/direct_io"

# The driver marks what it has prepared (RQF_DONTPREP); a rest with this mark would bypass k2.
trace_begin k2/k2_dispatch block/block_rq_issue
dd if="$STEADY_DEVICE" of=/dev/null bs=256k count=1 iflag=direct status=none
trace_end >"$SCRATCH/trace"
expect "pieces dispatched" "$(grep -c k2_dispatch: "$SCRATCH/trace")" 64
expect "commands issued" "$(grep -c 'block_rq_issue: .* R[AFMS]* ' "$SCRATCH/trace")" 64

"$io" write "$STEADY_DEVICE" 5 1024 200704 3 1
"$io" verify "$STEADY_DEVICE" 5 1024 65536 3 1
knob "$disk" iosched/split_kib 0
"$io" verify "$STEADY_DEVICE" 5 1024 524288 1 1

k2_expect_settled "$disk"
knob "$disk" scheduler none
