#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: with no memory for clones, pieces come from the reserve, or wait; nothing is unsplit.
# DEVICE: none
# FLAVOUR: debug
# MODULES: null_blk nr_devices=0
# ALONE: it makes allocations of the whole guest fail
# KERNELS: 6.1 6.12
# 7.3 makes no thread without such an allocation.
. "$STEADY_TESTS/lib.sh"
set -e

null_blk_create nullb0 completion_nsec=100000
use_k2 nullb0 64 4
io="$STEADY_TESTS_BIN/direct_io"

# Every slab allocation that may not sleep fails from here on, the clones among them.
cd /sys/kernel/debug/failslab
echo 0 >verbose
echo -1 >"times"
echo 100 >probability
"$io" write /dev/nullb0 0 3072 65536 48 1
"$io" verify /dev/nullb0 0 3072 65536 48 1
echo 0 >probability
cd /

"$io" verify /dev/nullb0 0 3072 524288 4 1
# 48 requests at a time with 32 clones in reserve.
expect_at_least deferred "$(k2_count nullb0 background deferred)" 1
# 2 passes of 3 MiB in 4 KiB pieces, and the last; merging may save some requests, not pieces.
expect_at_least "split" "$(k2_count nullb0 background split)" 1400

k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
