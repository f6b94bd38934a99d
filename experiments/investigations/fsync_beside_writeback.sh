#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Where does a real-time append with fsync wait while a buffered writer runs? Prints the latencies of
# the appends and, every 0.2 s, the kernel's stacks of all blocked tasks, the real-time dd among
# them. Arguments go to mkfs.ext4 (-O fast_commit, for example). For the lab:
#
#	steady-lab boot --device experiments/devices/foresee-ncemad9d-cache.toml --work DIR -- \
#		sh /run/steadyio/project/experiments/investigations/fsync_beside_writeback.sh
#
# The stacks are in DIR/.steady/kernel.log, the latencies in DIR/.steady/console.log; for the lab the
# stacks are a sign of trouble, so its exit status is 1. docs/guides/filesystem.md has the findings. It
# formats its disk, so it runs on the emulated one only.
set -e

disk=mmcblk0
mount=/run/mount

[ -d /sys/bus/platform/drivers/steady_emmc ] || {
	echo "no emulated eMMC here: this formats /dev/$disk, and runs in the lab only" >&2
	exit 1
}
mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "$@" /dev/$disk
mkdir -p $mount
mount /dev/$disk $mount
echo k2 >/sys/block/$disk/queue/scheduler
echo 1 >/sys/block/$disk/queue/iosched/inflight_max
echo 4 >/sys/block/$disk/queue/iosched/split_kib
ionice -c 1 -n 0 -p "$(pgrep jbd2/$disk)"

now_us() {
	echo $(($(date +%s%N) / 1000))
}

dd if=/dev/zero of=$mount/background bs=1M count=400 status=none &
writer=$!
for _ in $(seq 60); do
	begin_us=$(now_us)
	ionice -c 1 -n 0 dd if=/dev/zero of=$mount/rt bs=4k count=1 oflag=append,sync conv=notrunc \
		status=none
	echo "append with fsync: $(($(now_us) - begin_us)) us"
	sleep 0.01
done &
appends=$!
while kill -0 $appends 2>/dev/null; do
	sleep 0.2
	echo w >/proc/sysrq-trigger
done
kill $writer 2>/dev/null || true
wait
umount $mount
