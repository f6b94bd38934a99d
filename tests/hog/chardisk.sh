#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The reader on a character device, alone and with background that starves, and on a lane; called by
# test_hog.py in the guest, with reader.c compiled in the work directory.
# shellcheck source=../kernel/lib.sh
. "$STEADY_TESTS/lib.sh"
set -eu
chario_take
echo 64 >"$CHARIO_KNOBS/bg_kib"
echo "alone quiet $(./reader "$CHARDISK_NODE")"
echo "alone hog $(./reader "$CHARDISK_NODE" hog)"
echo "background quiet $(./reader "$CHARDISK_NODE" background)"
echo "background hog $(./reader "$CHARDISK_NODE" hog background)"
chario_give
emmc_partition 2048 131072
echo mmcblk0p1 >"$CHARIO/lane"
echo "lane quiet $(./reader "$CHARDISK_NODE")"
echo "lane hog $(./reader "$CHARDISK_NODE" hog)"
echo mmcblk0p1 >"$CHARIO/end_lane"
