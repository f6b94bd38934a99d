#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# An SD card as a character device: random transfers of several threads keep their data, and the card
# goes back to mmcblk.
. "$STEADY_TESTS/lib.sh"
set -e

card=$(ls /sys/bus/mmc/devices)
echo "$card" >"$CHARIO/take" || fail "take $card"
[ -c "$CHARDISK_NODE" ] || fail "no $CHARDISK_NODE"
"$STEADY_TESTS_BIN/chardisk_stress" "$CHARDISK_NODE" seed=1 transfers=300 threads=4
echo "$card" >"$CHARIO/give" || fail "give $card"
for _ in $(seq 100); do
	[ -b /dev/mmcblk0 ] && exit 0
	sleep 0.1
done
fail "no /dev/mmcblk0"
