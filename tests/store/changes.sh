#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Makes a store on the card, and changes it by the lines of the file changes: "put ID TEXT BYTES" or "delete
# ID". Notes in the file marks when each began and ended. With $STORE_NO_FLUSH the card reports no cache to
# the kernel, so it flushes none.
# shellcheck source=../kernel/lib.sh
. "$STEADY_TESTS/lib.sh"

"$STEADY" store create "$STEADY_DEVICE" --align 64KiB --extents 8 >/dev/null || fail "create"
if [ -n "${STORE_NO_FLUSH:-}" ]; then
	echo "write through" >/sys/block/mmcblk0/queue/write_cache || fail "write_cache"
fi
while read -r action id text bytes; do
	case $action in
	put)
		pattern "$text" "$bytes" >contents
		set -- put "$STEADY_DEVICE" "$id" contents
		;;
	*)
		set -- delete "$STEADY_DEVICE" "$id"
		;;
	esac
	begun=$("$STEADY_TESTS_BIN/now_ns")
	"$STEADY" store "$@" >/dev/null || fail "$*"
	echo "$begun $("$STEADY_TESTS_BIN/now_ns")" >>marks
done <changes
