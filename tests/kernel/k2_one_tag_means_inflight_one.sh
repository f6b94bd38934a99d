#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: inflight_max is 1 by default on a device that takes one request at a time
# DEVICE: none
# MODULES: null_blk nr_devices=0
# STOCK: yes
. "$STEADY_TESTS/lib.sh"
set -e

null_blk_create nullb0 hw_queue_depth=1 completion_nsec=10000
knob nullb0 scheduler k2
expect "default inflight_max" "$(knob nullb0 iosched/inflight_max)" 1
dd if=/dev/nullb0 of=/dev/null bs=64k count=4 iflag=direct status=none
k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
