#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# A store on a card as a character device: the whole card, and one partition while mmcblk has the rest; the
# block layer reads what one wrote. Called by test_on_chardisk.py in the guest.
# shellcheck source=../kernel/lib.sh
. "$STEADY_TESTS/lib.sh"

store() {
	command=$1
	shift
	"$STEADY" store "$command" "$@"
}

use() { # NODE: contents go in and come out, and one is deleted
	store create "$1" --force >said 2>&1 || fail "create $1: $(cat said)"
	for id in 1 2 3; do
		pattern "store$id" $((id * 500000)) >contents$id
		store put "$1" $id contents$id --size 2MiB >/dev/null || fail "put $id"
	done
	store delete "$1" 2 >/dev/null || fail "delete"
	for id in 1 3; do
		store get "$1" $id copy >/dev/null || fail "get $id"
		cmp contents$id copy || fail "extent $id of $1"
	done
	store check "$1" >said || fail "check: $(cat said)"
}

emmc_partition 2048 131072
chario_take_regions @1M+8M
store create "$CHARDISK_NODE" --force 2>said && fail "a store in a part of a card"
grep -q "region" said || fail "regions: $(cat said)"
chario_give
chario_take_regions ""
use "$CHARDISK_NODE"
chario_give
store check "$EMMC_NODE" >said || fail "by mmcblk: $(cat said)"

emmc_partition 2048 131072
echo mmcblk0p1 >"$CHARIO/lane" || fail "lane"
use "$CHARDISK_NODE"
echo mmcblk0p1 >"$CHARIO/end_lane" || fail "end of the lane"
store check "${EMMC_NODE}p1" >said || fail "by mmcblk0p1: $(cat said)"
echo "all done"
