#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The recorder, the tracer and the bench on a stock kernel with several CPUs. No time is asserted, but all
# counts are. The folder of a command for another processor also has a recorder in C.
. "$STEADY_STOCK/lib.sh"
set -e

disk=${STEADY_DISKS%% *}
name=${disk#/dev/}
mkfs.ext4 -q -F "$disk"
mkdir -p /run/mounted
mount "$disk" /run/mounted

"$STEADY" record --dir /run/mounted/recording --size 4KiB --period 10ms --duration 3s \
	--segment-size 8MiB --segments 4 --out record.json
"$STEADY" recover --verify --json /run/mounted/recording >recover.json
from_c=${STEADY%/*}/record_from_c
if [ -x "$from_c" ]; then
	# 3: a ring was full, on a slow machine.
	"$from_c" /run/mounted/from-c 300 >from-c || [ $? -eq 3 ]
	"$STEADY" recover --verify --json /run/mounted/from-c >recover-from-c.json
fi

# Four writers at once, on whichever CPU they are.
cat >writers.sh <<'END'
for writer in 1 2 3 4; do
	dd if=/dev/zero of=/run/mounted/$writer bs=64k count=50 oflag=direct conv=fsync status=none &
done
wait
END
"$STEADY" trace --device "$name" --json --perfetto trace.perfetto -- sh ./writers.sh >trace.json
cat >tasks.toml <<END
schema = "steadyio.tasks/1"
name = "writers"
[k2]
inflight_max = 1
max_sectors_kb = 512
nr_requests = 64
[[task]]
name = "dd"
op = "write"
kib = 64
level = 0
period_us = 1_000_000
END
# On a slow machine they compute for longer than their deadline.
"$STEADY" bound "$STEADY_DEVICES/test-plain.toml" tasks.toml --cpu-from trace.json --json \
	>bound.json || [ $? -eq 3 ]
umount /run/mounted
use_k2 "$name" 2 16
knob "$name" scheduler none
cat >workload.toml <<END
schema = "steadyio.workload/1"
name = "stock"
title = "Real-time beside background"
seed = 1
[length]
ios = 200
[[job]]
name = "rt"
class = "rt"
op = "randread"
bs_kib = 4
depth = 1
ioprio = "rt/0"
data = "zero"
[[job]]
name = "bg"
class = "bg"
op = "randread"
bs_kib = 256
depth = 4
ioprio = "idle"
data = "zero"
[sweep]
key = "bg.bs_kib"
values = [256]
[[variant]]
name = "none"
title = "none"
knobs = { scheduler = "none" }
[[variant]]
name = "k2"
title = "k2"
knobs = { scheduler = "k2", "iosched/split_kib" = 16 }
END
"$STEADY" bench workload.toml --device "$disk" --out bench.json
