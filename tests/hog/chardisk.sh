#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The reader on a character device, alone and with background that starves; called by test_hog.py in
# the guest, with reader.c compiled in the work directory.
set -eu
echo mmc0:0001 >/sys/bus/mmc/drivers/chario/take
echo 64 >/sys/class/chardisk/chardisk0/bg_kib
echo "alone quiet $(./reader /dev/chardisk0)"
echo "alone hog $(./reader /dev/chardisk0 hog)"
echo "background quiet $(./reader /dev/chardisk0 background)"
echo "background hog $(./reader /dev/chardisk0 hog background)"
echo mmc0:0001 >/sys/bus/mmc/drivers/chario/give
