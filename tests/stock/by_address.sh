#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Buffers by physical address: only in memory that was declared when the module was loaded, and only
# reserved memory can be declared. The guest has 64 MiB of it at 512 MiB.
# shellcheck source=../kernel/lib.sh
. "$STEADY_TESTS/lib.sh"
set -e

card=$(ls /sys/bus/mmc/devices)
echo "$card" >"$CHARIO/take" || fail "take $card"
"$STEADY_TESTS_BIN/chardisk_by_address" "$CHARDISK_NODE" $((512 << 20)) $((64 << 20))
echo "$card" >"$CHARIO/give" || fail "give $card"

rmmod chario
# Video memory, the ROM of its card and the system's are reserved, too, and no RAM.
for memory in 640K+64K 640K+4K 736K+32K 768K+32K 960K+64K 1020K+4K 1020K+8K 1M+4K 16M+4K 511M+2M 575M+2M 512M+4G 512M 512M+1 512M+0 1 512M+4Kx; do
	! insmod "$STEADY_MODULE_CHARIO" "memory=$memory" 2>/dev/null ||
		fail "memory=$memory was accepted"
done
insmod "$STEADY_MODULE_CHARIO"
