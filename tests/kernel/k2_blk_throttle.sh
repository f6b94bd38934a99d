#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a cgroup's io.max throttles above k2: its limit holds, order and data are right, others continue
# DEVICE: none
# MODULES: null_blk nr_devices=0
. "$STEADY_TESTS/lib.sh"
set -e

null_blk_create nullb0 completion_nsec=20000
use_k2 nullb0 1 4
mkdir "$SCRATCH/cgroup"
mount -t cgroup2 cgroup2 "$SCRATCH/cgroup"
echo +io >"$SCRATCH/cgroup/cgroup.subtree_control"
mkdir "$SCRATCH/cgroup/slow"
echo "$(cat /sys/block/nullb0/dev) rbps=4194304 wbps=4194304" >"$SCRATCH/cgroup/slow/io.max"

# in_slow COMMAND...: the command, as a member of the group.
in_slow() {
	sh -c 'echo 0 >"$0/slow/cgroup.procs" && exec "$@"' "$SCRATCH/cgroup" "$@"
}
now_ms() {
	awk '{ print int($1 * 1000) }' /proc/uptime
}

# 2 MiB at 4 MiB/s take 0.5 s, in background and in real-time.
for class in 3 1; do
	begin_ms=$(now_ms)
	in_slow ionice -c $class dd if=/dev/nullb0 of=/dev/null bs=256k count=8 iflag=direct status=none
	took_ms=$(($(now_ms) - begin_ms))
	expect_at_least "ms for 2 MiB, class $class" $took_ms 400
	expect_at_most "ms for 2 MiB, class $class" $took_ms 700
done
# Real-time outside is not throttled, nor does it wait for throttled requests.
in_slow "$STEADY_TESTS_BIN/io_stream" /dev/nullb0 jobs=2 ios=60 region_kib=1024 largest_kib=128 &
stream=$!
max_ns=$("$STEADY_TESTS_BIN/rt_reader" /dev/nullb0 4 100 3000 4 0 read | awk '{ print $2 }')
expect_at_most "rt latency next to throttled background" "$max_ns" 60000
wait $stream || fail "the throttled stream"

k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
umount "$SCRATCH/cgroup"
