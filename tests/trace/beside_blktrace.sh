#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: steady trace and blktrace trace one load in the guest, on the card or on ext4 on it
# DEVICE: test-plain
# FLAVOUR: base
#
# Leaves card.blktrace.*, the folder kept/ and record.json in the work folder; test_against_blktrace.py compares
# them. $STEADY_LOAD: raw or ext4. $STEADY: the command.
# shellcheck source=../kernel/lib.sh
. "$STEADY_TESTS/lib.sh"
set -e

mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
disk=$STEADY_DEVICE
# One fio for all jobs, in turn: when it starts it reads the clock 250,000 times, seconds of work in a guest.
cat >"$SCRATCH/raw" <<LOAD
set -e
fio --output="$SCRATCH/fio" \\
	--name=reads --filename=$disk --direct=1 --rw=randread --bsrange=4k-256k --number_ios=200 --size=128m \\
	--ioengine=libaio --iodepth=8 --randseed=1 \\
	--name=mixed --stonewall --filename=$disk --direct=1 --rw=randrw --bsrange=4k-256k --number_ios=200 \\
	--size=128m --ioengine=psync --fsync=16 --randseed=2 \\
	--name=buffered --stonewall --filename=$disk --rw=randwrite --bs=4k --number_ios=300 --size=8m --end_fsync=1 \\
	--ioengine=psync --randseed=3
blkdiscard -o 64m -l 4m $disk
LOAD
cat >"$SCRATCH/ext4" <<LOAD
set -e
fio --output="$SCRATCH/fio" \\
	--name=mixed --directory=$SCRATCH/mnt --rw=randrw --bsrange=4k-256k --number_ios=200 --size=32m \\
	--ioengine=psync --fsync=16 --randseed=4 \\
	--name=direct --stonewall --directory=$SCRATCH/mnt --direct=1 --rw=randwrite --bsrange=4k-256k \\
	--number_ios=200 --size=32m --ioengine=libaio --iodepth=8 --randseed=5
sync
LOAD
if [ "$STEADY_LOAD" = ext4 ]; then
	mkfs.ext4 -q -b 4096 -E lazy_itable_init=0,lazy_journal_init=0,nodiscard "$disk"
	mkdir "$SCRATCH/mnt"
	# Both tools begin and end at moments of their own: nothing else may read meanwhile.
	mount -o no_prefetch_block_bitmaps "$disk" "$SCRATCH/mnt"
	sync
fi

blktrace -d "$disk" -o card >blktrace.log 2>&1 &
blktrace=$!
sleep 0.5
status=0
"$STEADY" trace --device "$disk" --keep kept --json -- sh "$SCRATCH/$STEADY_LOAD" >record.json || status=$?
sleep 0.5
# `steady trace` has read the names of blktrace's threads, and /proc keeps an entry of each. On 6.12, a
# process that waits for blktrace spins in the kernel while a thread of it drops its own entry
# (shrink_dcache_parent() in fs/dcache.c). Virtual time does not advance meanwhile, so the scheduler would
# never let that thread run. With a real-time priority the thread goes first.
chrt --all-tasks --fifo --pid 1 $blktrace
kill -INT $blktrace
wait $blktrace
[ "$STEADY_LOAD" = raw ] || umount "$SCRATCH/mnt"
exit $status
