#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: jobs that come early or late are counted, with the waits that follow, and poll reports them
# DEVICE: test-plain
. "$STEADY_TESTS/lib.sh"
. "$STEADY_TESTS/lib_declared.sh"
set -e

use_declared mmcblk0
begin_background mmcblk0
"$DECLARE" "line=$(task mmcblk0 0 20000)" level=0 read=/dev/mmcblk0,4,20,20000 \
	show poll sleep=60 read=/dev/mmcblk0,4,1,20000 show poll read=/dev/mmcblk0,4,50,7300 \
	poll show poll >"$SCRATCH/out"
end_background
cat "$SCRATCH/out"
expect early "$(value early <"$SCRATCH/out" | tr '\n' ' ')" "0 0 50 "
expect late "$(value late <"$SCRATCH/out" | tr '\n' ' ')" "0 1 1 "
expect "what poll said" "$(grep changed "$SCRATCH/out" | tr '\n' ' ')" \
	"unchanged unchanged changed unchanged "
expect "waits that are k2's fault" "$(value over_k2 <"$SCRATCH/out" | tr '\n' ' ')" "0 0 0 "
no_tasks mmcblk0
k2_expect_settled mmcblk0
knob mmcblk0 scheduler none
