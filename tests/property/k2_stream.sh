#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# In the guest, for test_k2_property.py: random I/O on a null_blk with k2, traced into ./trace.
# From the environment: K2_KNOBS, K2_CHANGES (both "NAME=VALUE ..."), K2_IO (arguments of io_stream),
# K2_BAD_SECTORS, K2_BLOCK_BYTES.
# shellcheck source=../kernel/lib.sh
. "$STEADY_TESTS/lib.sh"
set -e

null_blk_create nullb0 completion_nsec=50000 blocksize="$K2_BLOCK_BYTES"
knob nullb0 scheduler k2
for setting in $K2_KNOBS; do
	knob nullb0 "iosched/${setting%%=*}" "${setting#*=}"
done
for sector in $K2_BAD_SECTORS; do
	echo "+$sector-$sector" >"$CONFIGFS/nullb/nullb0/badblocks"
done

echo 65536 >/sys/kernel/tracing/buffer_size_kb
trace_begin k2/k2_dispatch k2/k2_look_ahead block/block_rq_insert block/block_rq_complete \
	block/block_bio_backmerge block/block_bio_frontmerge block/block_rq_merge
# shellcheck disable=SC2086 # words
"$STEADY_TESTS_BIN/io_stream" /dev/nullb0 marks=1 $K2_IO &
streams=$!
for setting in $K2_CHANGES; do
	sleep 0.005
	echo "knob begin ${setting%%=*} ${setting#*=}" >/sys/kernel/tracing/trace_marker
	knob nullb0 "iosched/${setting%%=*}" "${setting#*=}"
	echo "knob end ${setting%%=*} ${setting#*=}" >/sys/kernel/tracing/trace_marker
done
wait $streams
echo 0 >/sys/kernel/tracing/tracing_on
grep entries-in-buffer /sys/kernel/tracing/trace
grep -v '^#' /sys/kernel/tracing/trace >trace
k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
