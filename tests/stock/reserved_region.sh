#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# A reserved region as memory of transfers: O_DIRECT and a registered buffer of a character device take
# it, io_uring registers it on 6.12 and refuses it on 6.1. Data are checked.
# shellcheck source=../kernel/lib.sh
. "$STEADY_TESTS/lib.sh"
# shellcheck source=../bench/reserved_memory.sh
. "$STEADY_TESTS/../bench/reserved_memory.sh"
set -e

reserved_memory
"$STEADY" direct buffer /dev/dax0.0 --bytes 4M --target /dev/mmcblk0
"$STEADY" direct buffer /dev/dax0.0 --bytes 4M --target /dev/mmcblk0 --json >said
grep -q '"memory": "a reserved region' said || fail "memory: $(cat said)"
works=$(grep -c '"works": *true' said)
[ "$STEADY_KERNEL" = 6.1 ] && wanted=1 || wanted=2
[ "$works" -eq "$wanted" ] || fail "$works of 2 ways work on $STEADY_KERNEL, expected $wanted"

card=$(ls /sys/bus/mmc/devices)
echo "$card" >"$CHARIO/take" || fail "take $card"
"$STEADY_TESTS_BIN/chardisk_stress" "$CHARDISK_NODE" seed=1 transfers=300 threads=4 \
	memory=/dev/dax0.0
echo "$card" >"$CHARIO/give" || fail "give $card"
