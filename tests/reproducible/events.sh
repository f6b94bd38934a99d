#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: what happens in a guest, down to each block event and its time, is the same everywhere
# DEVICE: test-plain
# FLAVOUR: base
#
# Many programs, each with its own libraries, on a raw card and on ext4. Leaves `events` in the work
# folder; test_reproducible.py compares its hash with the committed one. k2 is loaded but not used: only
# what it registers, such as /dev/k2, can change something here, namely the kernel's random numbers.
set -e

echo none >"/sys/block/${STEADY_DEVICE#/dev/}/queue/scheduler"
echo mono >/sys/kernel/tracing/trace_clock
echo 1 >/sys/kernel/tracing/events/block/enable
fio --name=reads --filename="$STEADY_DEVICE" --direct=1 --rw=randread --bsrange=4k-256k --number_ios=50 \
	--size=64m --ioengine=libaio --iodepth=4 --randseed=1 --clocksource=clock_gettime --output=/run/fio
mkfs.ext4 -q -E nodiscard "$STEADY_DEVICE"
mkdir /run/card
mount "$STEADY_DEVICE" /run/card
for n in $(seq 5); do
	dd if=/dev/urandom of="/run/card/$n" bs=4k count=$((n * 10)) conv=fsync status=none
	sleep 0.3
done
find /run/card -type f -exec sha256sum {} + | sort >/run/sums
umount /run/card
mkfs.f2fs -q -f "$STEADY_DEVICE"
{
	cat /sys/kernel/tracing/trace /run/sums
	date +%s.%N
} >events
