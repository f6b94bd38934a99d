#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: k2 uses the priority as a cgroup's io.prio.class changes it
# DEVICE: none
# MODULES: null_blk nr_devices=0
. "$STEADY_TESTS/lib.sh"
set -e

null_blk_create nullb0 completion_nsec=10000
use_k2 nullb0 1 0
mkdir "$SCRATCH/cgroup"
mount -t cgroup2 cgroup2 "$SCRATCH/cgroup"
echo +io >"$SCRATCH/cgroup/cgroup.subtree_control"
mkdir "$SCRATCH/cgroup/group"
# read_in_group CLASS COMMAND...
read_in_group() {
	echo "$1" >"$SCRATCH/cgroup/group/io.prio.class"
	shift
	sh -c 'echo 0 >"$0/group/cgroup.procs" && exec "$@"' "$SCRATCH/cgroup" \
		"$@" dd if=/dev/nullb0 of=/dev/null bs=4k count=1 iflag=direct status=none
}

expect_dispatched "R 0 4096 2;" read_in_group no-change ionice -c 1 -n 2
# The two policies that lower make real-time background.
expect_dispatched "R 0 4096 9;" read_in_group restrict-to-be ionice -c 1 -n 2
expect_dispatched "R 0 4096 10;" read_in_group idle ionice -c 1 -n 2
expect_dispatched "R 0 4096 10;" read_in_group restrict-to-be ionice -c 3
# And the other way round, where the kernel can (promote-to-rt, since 6.5): level 4.
if echo promote-to-rt >"$SCRATCH/cgroup/group/io.prio.class" 2>/dev/null; then
	expect_dispatched "R 0 4096 4;" read_in_group promote-to-rt ionice -c 3
	expect_dispatched "R 0 4096 2;" read_in_group promote-to-rt ionice -c 1 -n 2
fi

k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
umount "$SCRATCH/cgroup"
