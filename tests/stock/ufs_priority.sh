#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# A UFS device learns which requests are real-time: exactly their commands have the priority bit (4).
# 40 is a read and 20 a write. k2 cuts background, so it sends 16 commands for one of real-time.
. "$STEADY_STOCK/lib.sh"
set -e

disk=${STEADY_DISKS%% *}
name=${disk#/dev/}

# flags_of COMMAND...: counts and flags of the commands for 4 writes and 4 reads that it runs.
flags_of() {
	trace_begin ufs/ufshcd_upiu
	"$@" dd if=/dev/zero of="$disk" bs=256K count=4 oflag=direct status=none
	"$@" dd if="$disk" of=/dev/null bs=256K count=4 iflag=direct status=none
	trace_end | sed -n 's/.* send_req: .* HDR:01 \(..\) .* CDB:2[8a] .*/\1/p' |
		sort | uniq -c | xargs
}

use_k2 "$name" 2 16
expect "class real-time" "$(flags_of ionice -c 1)" "4 24 4 44"
expect "SCHED_FIFO" "$(flags_of chrt -f 1)" "4 24 4 44"
expect "best effort" "$(flags_of ionice -c 2 -n 0)" "64 20 64 40"
expect "idle" "$(flags_of ionice -c 3)" "64 20 64 40"
knob "$name" scheduler none
echo "$name: the device learns which are real-time"
