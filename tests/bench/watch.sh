#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# 5,000 requests a second under k2, of four classes, beside `steady watch`; called by watch.py in a
# guest with null_blk.
set -eu
seconds=10
steady=/run/steadyio/project/build/bin/steady
echo k2 >/sys/block/nullb0/queue/scheduler
load() { # $1: ionice's options, $2: requests per second
	# shellcheck disable=SC2086
	ionice $1 fio --name=load --filename=/dev/nullb0 --rw=randread --bs=4k --direct=1 --thread \
		--rate_iops="$2" --time_based --runtime=$((seconds + 10)) --eta=never --output=/dev/null &
}
load "-c 1 -n 0" 1000
load "-c 1 -n 4" 1000
load "-c 2" 2000
load "-c 3" 1000
sleep 5
"$steady" watch nullb0 --count $seconds --openmetrics /tmp/watch.prom
echo "requests $(head -n 1 -q /sys/block/nullb0/queue/iosched/latency_* | awk '{ n += $2 } END { print n }')"
wait
