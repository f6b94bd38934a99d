#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: pieces and requests that the driver returns are dispatched again, and only then complete
# DEVICE: none
# FLAVOUR: debug
# MODULES: null_blk nr_devices=0 requeue=3,100,0,-1
# COMPAT: insert_flags.h
. "$STEADY_TESTS/lib.sh"
set -e

# Every third request is returned: in turn with BLK_STS_RESOURCE and with a requeue.
null_blk_create nullb0 completion_nsec=10000
use_k2 nullb0 2 4
io="$STEADY_TESTS_BIN/direct_io"
"$io" write /dev/nullb0 0 512 65536 4 1
ionice -c 1 "$io" verify /dev/nullb0 0 512 65536 4 1
"$io" verify /dev/nullb0 0 512 524288 1 1
expect_at_least "background retried" "$(k2_count nullb0 background retried)" 10
expect_at_least "rt retried" "$(k2_count nullb0 rt retried)" 1

k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
