#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# usage, in the clone: build/bin/steady-lab boot --device experiments/devices/foresee-ncemad9d-cache.toml \
#	--kernel 6.1 --work FOLDER -- sh /run/steadyio/project/device/trace/tests/traces/record-in-guest.sh
#
# Records one small load on the lab's card with trace-cmd and ftrace at the same time, on the monotonic clock, and leaves in FOLDER what they wrote and printed. The clock of the guest is virtual: every run on the same
# machine gives the same. The samples 6.1-* and 6.12-* are from here; tests/trace/ makes them afresh and compares
# all of them.
set -eu

disk=/dev/mmcblk0
tracefs=/sys/kernel/tracing
mountpoint -q $tracefs || mount -t tracefs none $tracefs
mkfs.ext4 -q -b 4096 -E lazy_itable_init=0,lazy_journal_init=0,nodiscard $disk
mkdir /tmp/mnt
# The tools begin and end at moments of their own: nothing else may read meanwhile.
mount -o no_prefetch_block_bitmaps $disk /tmp/mnt
sync
# Programs with names of their own: one with a space and brackets.
cp "$(command -v dd)" /tmp/loader
cp "$(command -v dd)" "/tmp/a [0] b"
cat >/tmp/load.sh <<EOF
set -e
/tmp/loader if=$disk of=/dev/null bs=16k count=4 iflag=direct status=none
/tmp/loader if=/dev/zero of=/tmp/mnt/data bs=64k count=4 conv=fsync status=none
"/tmp/a [0] b" if=/dev/zero of=/tmp/mnt/log bs=1M count=2 oflag=direct status=none
ionice -c 1 -n 2 /tmp/loader if=/dev/zero of=/tmp/mnt/rt bs=4k count=2 oflag=direct status=none
ionice -c 3 /tmp/loader if=$disk of=/dev/null bs=4k skip=1000 count=2 iflag=direct status=none
sync
sleep 0.1
EOF

instance=$tracefs/instances/samples
mkdir $instance
echo mono >$instance/trace_clock
echo 1 >$instance/events/block/enable
echo 1 >$instance/events/mmc/enable
sleep 0.3
trace-cmd record -q -C mono -o trace.dat -e block -e mmc -e jbd2:jbd2_start_commit -e jbd2:jbd2_end_commit \
	-e writeback:writeback_single_inode -e writeback:writeback_single_inode_start sh /tmp/load.sh
echo 0 >$instance/tracing_on
cat $instance/trace >trace.txt
rmdir $instance
trace-cmd report -t -i trace.dat >report.txt 2>report.log
umount /tmp/mnt
