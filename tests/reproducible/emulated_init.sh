#!/bin/busybox sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=dash
#
# First program of the emulated machine (other_processor.py): mount the files of the machine outside,
# with memory over them, and run /go in them.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
while read -r module; do
	insmod "/modules/$module.ko"
done </modules/order
mount -t 9p -o ro,trans=virtio,version=9p2000.L,cache=loose,msize=262144 host /lower
mount -t tmpfs -o size=1g tmpfs /upper
mkdir /upper/new /upper/work
mount -t overlay -o lowerdir=/lower,upperdir=/upper/new,workdir=/upper/work overlay /new
for place in proc sys dev; do
	mount --move /$place /new/$place
done
mkdir -p /new/dev/shm
for place in dev/shm run mnt; do
	mount -t tmpfs tmpfs /new/$place
done
cp /go /new/mnt/go
exec switch_root /new /bin/sh /mnt/go
