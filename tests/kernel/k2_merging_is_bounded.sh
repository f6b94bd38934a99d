#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: background neighbours merge, unsplit to 128 KiB at most; real-time never merges
# DEVICE: none
# MODULES: null_blk nr_devices=0
. "$STEADY_TESTS/lib.sh"
set -e

null_blk_create nullb0 completion_nsec=50000000 max_sectors=2048
io="$STEADY_TESTS_BIN/direct_io"

# write_neighbours CLASS: 64 x 4 KiB side by side, queued while the device is busy. Prints the
# size of the largest dispatch.
write_neighbours() {
	trace_begin k2/k2_dispatch
	dd if=/dev/nullb0 of=/dev/null bs=4k count=1 skip=8000 iflag=direct status=none &
	sleep 0.001
	ionice -c "$1" "$io" write /dev/nullb0 0 256 4096 64 "$1"
	wait
	trace_end | sed -n 's/.* + \([0-9]*\) bytes queue .*/\1/p' | sort -n | tail -n 1
}

use_k2 nullb0 1 0
largest=$(write_neighbours 3)
"$io" verify /dev/nullb0 0 256 65536 1 3
expect "largest unsplit" "$largest" 131072

# The one that fills the gap between two makes one request of three. (Of best effort, those of one
# process only.)
dd if=/dev/nullb0 of=/dev/null bs=4k count=1 skip=8000 iflag=direct status=none &
sleep 0.001
for place in 20 22 21; do
	ionice -c 3 dd if=/dev/nullb0 of=/dev/null bs=4k count=1 skip=$place iflag=direct status=none &
	sleep 0.001
done
wait
expect "requests merged" "$(k2_count nullb0 background merged)" 1
k2_expect_settled nullb0

knob nullb0 iosched/split_kib 64
before=$(k2_count nullb0 background split)
largest=$(write_neighbours 2)
"$io" verify /dev/nullb0 0 256 65536 1 2
expect "largest piece" "$largest" 65536
expect_at_least "pieces of merged requests" \
	"$(($(k2_count nullb0 background split) - before))" 1

largest=$(write_neighbours 1)
expect "largest real-time request" "$largest" 4096
expect "rt merged" "$(k2_count nullb0 rt merged)" 0

k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
