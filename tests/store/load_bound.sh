#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Loads contents of each size in $STORE_SIZES, and prints a line for each: bytes, what steady says
# of the load (commands, ns), and how many reads the card saw in it.
# shellcheck source=../kernel/lib.sh
. "$STEADY_TESTS/lib.sh"

# member NAME: a number of the JSON document in load.json.
member() {
	sed -n "s/^ *\"$1\": \([0-9]*\),*\$/\1/p" load.json
}

"$STEADY" store create "$STEADY_DEVICE" --align 64KiB >/dev/null || fail "create"
echo "sectors $(knob mmcblk0 max_sectors_kb) segments $(knob mmcblk0 max_segments)"
for bytes in $STORE_SIZES; do
	pattern load "$bytes" >contents
	"$STEADY" store put "$STEADY_DEVICE" 1 contents --size 16MiB >/dev/null || fail "put $bytes"
	before=$(emmc_stat reads)
	"$STEADY" store list "$STEADY_DEVICE" >/dev/null || fail "list"
	opened=$(emmc_stat reads)
	"$STEADY" store get "$STEADY_DEVICE" 1 copy --json >load.json || fail "get $bytes"
	cmp contents copy || fail "$bytes bytes are not what was put"
	# Opening reads the same each time.
	seen=$(($(emmc_stat reads) - opened - (opened - before)))
	echo "load $bytes $(member reads) $(member device_ns) $seen"
	"$STEADY" store delete "$STEADY_DEVICE" 1 >/dev/null || fail "delete"
done
