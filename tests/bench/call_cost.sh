#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The guest's part of steady_lab/figures/call_cost.py: for each line of $PWD/cases, calls with step.c's
# marks around them. A line: NODE HOW read|write BYTES ROUNDS; the card is taken at the first one of
# a character device.
STEADY_TESTS=/run/steadyio/project/tests/kernel
# shellcheck source=../kernel/lib.sh
. "$STEADY_TESTS/lib.sh"
set -e

knob mmcblk0 scheduler none
for module in chario steady_emmc; do
	echo "module $module $(cat /sys/module/$module/sections/.text)"
done
while read -r node how op bytes rounds; do
	if [ "$node" = "$CHARDISK_NODE" ] && [ ! -e "$node" ]; then
		chario_take
	fi
	"$CALLER" "$node" "$how" "$op" "$bytes" "$rounds"
done <cases
chario_give
