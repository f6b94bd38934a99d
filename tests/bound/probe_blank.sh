#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs in a guest with an eMMC: `steady probe --blank` of it, and of a disk that keeps nothing.
set -eu
steady=/run/steadyio/project/build/bin/steady

ends_with() { # $1: the exit status, then the arguments
	want=$1
	shift
	status=0
	"$steady" probe "$@" >said 2>&1 || status=$?
	cat said
	[ $status -eq "$want" ] || exit 1
}

ends_with 2 /dev/mmcblk0 --quick --write /tmp/new --blank
grep -q "/tmp/new: must be a partition or disk with --blank" said
[ ! -e /tmp/new ]

ends_with 0 /dev/mmcblk0 --quick --write /dev/mmcblk0 --blank --out card.toml
ends_with 0 --verdict card.toml --rate 1000

[ -d /sys/kernel/config/nullb ] || mount -t configfs configfs /sys/kernel/config
disk=/sys/kernel/config/nullb/nullb0
mkdir "$disk"
for setting in size=64 irqmode=2 completion_nsec=5000000 submit_queues=1 memory_backed=0; do
	echo "${setting#*=}" >"$disk/${setting%=*}"
done
echo 1 >"$disk/power"
ends_with 2 /dev/nullb0 --quick --write /dev/nullb0 --blank
grep -q "/dev/nullb0 has 64 MiB: must have at least 128 MiB" said
echo 0 >"$disk/power"
echo 128 >"$disk/size"
echo 1 >"$disk/power"
ends_with 3 /dev/nullb0 --quick --write /dev/nullb0 --blank --out null.toml
ends_with 3 --verdict null.toml --rate 1
echo 0 >"$disk/power"
rmdir "$disk"
