#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: next to idle readers best effort reads as if alone, and idle gets the rest, and a little
# DEVICE: none
# MODULES: null_blk nr_devices=0
. "$STEADY_TESTS/lib.sh"
set -e

# 1 ms each, one at a time.
null_blk_create nullb0 completion_nsec=1000000 memory_backed=0 size=65536
use_k2 nullb0 1 0

# read_us COUNT: how long 64 KiB reads one after the other take, on average.
read_us() {
	begin_us=$(($(date +%s%N) / 1000))
	dd if=/dev/nullb0 of=/dev/null bs=64k count="$1" iflag=direct status=none
	echo $((($(date +%s%N) / 1000 - begin_us) / $1))
}

for place in $(seq 0 31); do
	ionice -c 3 dd if=/dev/nullb0 of=/dev/null bs=64k skip=$((place * 1000)) count=100000 \
		iflag=direct status=none &
	readers="$readers $!"
done
sleep 0.05
trace_begin k2/k2_dispatch
beside_us=$(read_us 500)
trace_end >"$SCRATCH/events"
idle=$(grep -c "queue 10 " "$SCRATCH/events")
echo "a read takes $beside_us us beside idle readers, which had $idle reads meanwhile"
expect_at_most "us of a read beside idle" "$beside_us" 1100
expect_at_least "reads of idle meanwhile" "$idle" 3
expect_at_most "reads of idle meanwhile" "$idle" 10

# 10 ms between two reads: idle has nearly all of them.
trace_begin k2/k2_dispatch
for _ in $(seq 20); do
	read_us 1 >/dev/null
	sleep 0.01
done
trace_end >"$SCRATCH/events"
idle=$(grep -c "queue 10 " "$SCRATCH/events")
expect_at_least "reads of idle in 20 times 10 ms" "$idle" 100

# shellcheck disable=SC2086 # words
kill $readers
wait
k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
