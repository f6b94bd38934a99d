#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: steady trace, on a card that takes known times: alone, and behind what k2 splits
# DEVICE: test-plain
# FLAVOUR: base
#
# Leaves alone/ and split/ (--keep) and split.json in the work folder for test_known_times.py. $STEADY: the command.
# shellcheck source=../kernel/lib.sh
. "$STEADY_TESTS/lib.sh"
set -e

disk=$STEADY_DEVICE
cat >"$SCRATCH/alone" <<LOAD
set -e
for kib in 4 16 64 128 512; do
	dd if=$disk of=/dev/null bs=\${kib}k count=20 iflag=direct status=none
	dd if=/dev/zero of=$disk bs=\${kib}k count=20 oflag=direct status=none
done
LOAD
"$STEADY" trace --device "$disk" --keep alone -- sh "$SCRATCH/alone"

use_k2 "${disk#/dev/}" 1 64
cat >"$SCRATCH/split" <<LOAD
set -e
dd if=/dev/zero of=$disk bs=512k count=40 oflag=direct status=none &
ionice -c 1 dd if=$disk of=/dev/null bs=4k skip=30000 count=200 iflag=direct status=none
wait
LOAD
"$STEADY" trace --device "$disk" --keep split --worst 300 --json -- sh "$SCRATCH/split" >split.json
knob "${disk#/dev/}" scheduler none
