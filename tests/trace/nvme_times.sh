#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: steady trace on the kernel's NVMe driver, over a disk that takes a known time for each command
# DEVICE: none
# FLAVOUR: base
# MODULES: null_blk nr_devices=0; nvme-loop
#
# Leaves kept/ and record.json in the work folder for test_driver_times.py. $STEADY: the command.
# shellcheck source=../kernel/lib.sh
. "$STEADY_TESTS/lib.sh"
# shellcheck source=driver_load.sh
. "$STEADY_TESTS/../trace/driver_load.sh"
set -e

null_blk_create nullb0 completion_nsec=100000 discard=1 cache_size=32
subsystem=$CONFIGFS/nvmet/subsystems/lab
port=$CONFIGFS/nvmet/ports/1
mkdir "$subsystem" "$subsystem/namespaces/1" "$port"
echo 1 >"$subsystem/attr_allow_any_host"
echo /dev/nullb0 >"$subsystem/namespaces/1/device_path"
echo 1 >"$subsystem/namespaces/1/enable"
echo loop >"$port/addr_trtype"
ln -s "$subsystem" "$port/subsystems/lab"
# 6.12 takes a host's name only together with its id.
host=00000000-0000-0000-0000-000000000001
echo "transport=loop,nqn=lab,hostid=$host,hostnqn=nqn.2014-08.org.nvmexpress:uuid:$host" >/dev/nvme-fabrics
for _ in $(seq 500); do
	[ -b /dev/nvme0n1 ] && break
	sleep 0.01
done
# The node is there before the kernel has looked for partitions, which is no part of the load.
sleep 0.1

trace_load /dev/nvme0n1

echo 1 >/sys/class/nvme/nvme0/delete_controller
rm "$port/subsystems/lab"
rmdir "$port" "$subsystem/namespaces/1" "$subsystem"
null_blk_remove nullb0
