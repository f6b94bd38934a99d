#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: waits of a declared task for discards are counted as forced, each once
# DEVICE: test-plain
# ALONE: on 6.12 lockdep warns if a SCSI disk appears in the same guest
. "$STEADY_TESTS/lib.sh"
. "$STEADY_TESTS/lib_declared.sh"
set -e

# 0.25 ms per MiB: 32 ms for 128 MiB.
emmc_reload name=PLAIN capacity_mib=256 read_base_ns=100000 read_per_kib_ns=4000 \
	erase_base_ns=1000000 erase_per_kib_ns=250
disk=${STEADY_DEVICE#/dev/}
use_declared "$disk"
while [ ! -e "$SCRATCH/stop" ]; do blkdiscard -l 128M "$STEADY_DEVICE"; done &
"$DECLARE" "line=$(task "$disk" 0 20000)" level=0 "read=$STEADY_DEVICE,4,100,20000" show \
	>"$SCRATCH/out"
touch "$SCRATCH/stop"
wait
cat "$SCRATCH/out"
forced=$(value over_forced <"$SCRATCH/out")
expect_at_least "waits for discards" "$forced" 5
expect_at_least "discards that did not fit" "$(k2_count "$disk" declared forced)" "$forced"
expect_at_least "the longest wait" "$(value waited_ns_max <"$SCRATCH/out")" 20000000
for cause in k2 device dispatch early_job late_job bypass; do
	expect "waits for $cause" "$(value "over_$cause" <"$SCRATCH/out")" 0
done
no_tasks "$disk"
k2_expect_settled "$disk"
knob "$disk" scheduler none
