#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The reader on a character device, alone and with background that starves, and on a lane; called by
# test_busy_task.py in the guest, with reader.c compiled in the work directory.
# shellcheck source=../kernel/lib.sh
. "$STEADY_TESTS/lib.sh"
set -eu
chario_take
echo 64 >"$CHARIO_KNOBS/bg_kib"
echo "alone quiet $(./reader "$CHARDISK_NODE")"
echo "alone task $(./reader "$CHARDISK_NODE" task)"
echo "background quiet $(./reader "$CHARDISK_NODE" background)"
echo "background task $(./reader "$CHARDISK_NODE" task background)"
chario_give
emmc_partition 2048 131072
echo mmcblk0p1 >"$CHARIO/lane"
echo "lane quiet $(./reader "$CHARDISK_NODE")"
echo "lane task $(./reader "$CHARDISK_NODE" task)"
echo mmcblk0p1 >"$CHARIO/end_lane"
