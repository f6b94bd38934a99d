#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: on a file system that became read-only, a recipe in which the caller writes reports no unflushed data as durable, and ends.
# DEVICE: test-cut
# FLAVOUR: base
# 6.12 warns by itself about the dirty pages that an emergency remount leaves behind.
# KERNELS: 6.1
. "$STEADY_FAILURES/recorder.sh"

make_filesystem
timeout 600 "$STEADY_RECIPE" append-fdatasync --dir "$RECORDING" --period 1ms --size 1KiB --unit 4KiB \
	--total 1500KiB >record.out 2>record.err &
recorder=$!
sleep 0.3
# From now on fdatasync() flushes nothing, and returns success.
echo 1 >/proc/sys/kernel/sysrq
echo u >/proc/sysrq-trigger
sleep 0.5
emmc_power_cut
wait $recorder
expect "status" $? 1
grep -q "read-only filesystem" record.err || fail "says: $(cat record.err)"
durable=$(sed -n 's/.*; \([0-9]*\) records are durable.*/\1/p' record.err)
expect_at_least "called durable" "$durable" 1
restart_card
bytes=$(cat "$RECORDING"/recording-*.raw | wc -c)
expect_at_least "found" $((bytes / 1024)) "$durable"
umount /run/mnt
