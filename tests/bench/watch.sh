#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# 5,000 requests a second under k2, of three classes, while `steady watch` runs; called by watch.py in a
# guest with null_blk.
set -eu
seconds=10
iosched=/sys/block/nullb0/queue/iosched
steady=/run/steadyio/project/build/bin/steady
load() { # $1: requests per second, rest: ionice's options
	rate=$1
	shift
	ionice "$@" fio --name=load --filename=/dev/nullb0 --rw=randread --bs=4k --direct=1 --thread \
		--rate_iops="$rate" --time_based --runtime=1000 --eta=never --output=/dev/null &
}
completed() {
	head -n 1 -q $iosched/latency_* | awk '{ n += $2 } END { print n }'
}
echo k2 >/sys/block/nullb0/queue/scheduler
load 1000 -c 1 -n 0
load 1000 -c 1 -n 4
load 3000 -c 2
sleep 4
before=$(completed)
"$steady" watch nullb0 --count $seconds --openmetrics /tmp/watch.prom
echo "requests a second: $((($(completed) - before) / seconds))"
echo "and with --traces, while nothing is late:"
"$steady" watch nullb0 --count $seconds --quiet --traces /tmp/traces
pkill -KILL fio
wait
