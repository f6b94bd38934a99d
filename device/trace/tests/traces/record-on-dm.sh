#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Needs dmsetup, and CONFIG_MD=y and CONFIG_BLK_DEV_DM=m in lab/kernel/base.config.
# Usage, in the clone:
#
#	build/bin/steady-lab boot --kernel 6.1 --module "null_blk nr_devices=0" --module dm-mod --work FOLDER -- \
#	sh /run/steadyio/project/device/trace/tests/traces/record-on-dm.sh
#
# Records reads, writes and a flush on a device-mapper disk of two parts of a partition, directly on
# that partition, and on the whole disk. Leaves trace.txt in FOLDER.
set -eu

configfs=/sys/kernel/config
mountpoint -q $configfs || mount -t configfs configfs $configfs
mkdir $configfs/nullb/nullb0
for setting in size=64 irqmode=2 completion_nsec=100000 memory_backed=1 cache_size=16 power=1; do
	echo ${setting#*=} >$configfs/nullb/nullb0/${setting%%=*}
done
addpart /dev/nullb0 1 2048 65536
printf '%s linear /dev/nullb0p1 %s\n' '0 2048' 4096 '2048 2048' 8192 |
	dmsetup --noudevsync --noudevrules create mapped
cat >/tmp/load.sh <<'EOF'
dd if=/dev/dm-0 of=/dev/null bs=4k count=10 iflag=direct status=none &
dd if=/dev/nullb0p1 of=/dev/null bs=16k skip=200 count=5 iflag=direct status=none &
wait
dd if=/dev/nullb0 of=/dev/null bs=32k skip=400 count=4 iflag=direct status=none
dd if=/dev/dm-0 of=/dev/null bs=128k skip=7 count=2 iflag=direct status=none
dd if=/dev/zero of=/dev/dm-0 bs=8k count=2 oflag=direct conv=fsync status=none
EOF

tracefs=/sys/kernel/tracing
echo mono >$tracefs/trace_clock
echo 1 >$tracefs/events/block/enable
sh /tmp/load.sh
echo 0 >$tracefs/events/block/enable
cat $tracefs/trace >trace.txt
dmsetup --noudevsync --noudevrules remove mapped
delpart /dev/nullb0 1
rmdir $configfs/nullb/nullb0
