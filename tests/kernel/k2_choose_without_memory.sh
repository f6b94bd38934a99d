#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: choosing k2 fails cleanly whichever allocation fails, and works afterwards.
# DEVICE: none
# MODULES: null_blk nr_devices=0
# FLAVOUR: debug
# ALONE: it makes allocations of the whole guest fail
# KERNELS: 6.12 7.3
# 6.1 leaks a reference to the scheduler's module when it cannot allocate tags. k2 could not be
# unloaded afterwards.
. "$STEADY_TESTS/lib.sh"
set -e

null_blk_create nullb0 completion_nsec=10000
knob nullb0 scheduler none
echo N >/sys/kernel/debug/failslab/ignore-gfp-wait
echo 0 >/sys/kernel/debug/failslab/verbose
refused=0 chosen=0
for nth in $(seq 1 3 150); do
	(
		echo "$nth" >/proc/self/fail-nth
		echo k2 >/sys/block/nullb0/queue/scheduler
	) 2>/dev/null || refused=$((refused + 1))
	case $(knob nullb0 scheduler) in
	*"[k2]"*)
		chosen=$((chosen + 1))
		dd if=/dev/nullb0 of=/dev/null bs=64k count=1 iflag=direct status=none
		knob nullb0 scheduler none
		;;
	esac
	expect "module users" "$(cat /sys/module/k2/refcnt)" 0
done
echo "refused $refused, chosen $chosen"
expect_at_least "refused" $refused 5
expect_at_least "chosen" $chosen 1
use_k2 nullb0 1 4
dd if=/dev/nullb0 of=/dev/null bs=64k count=1 iflag=direct status=none
k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
rmmod k2
insmod "$STEADY_MODULE_K2"
