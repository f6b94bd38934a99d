#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# A PCI disk that vanishes under load: every I/O ends, and k2 can be unloaded.
. "$STEADY_STOCK/lib.sh"
set -e

for disk in $STEADY_DISKS; do
	name=${disk#/dev/}
	pci=$(readlink -f "/sys/block/$name/device")
	while [ ! -e "$pci/vendor" ] || [ ! -e "$pci/remove" ]; do
		pci=${pci%/*}
		[ -n "$pci" ] || fail "$name is on no PCI device"
	done
	use_k2 "$name" 3 16
	zero "$disk"
	before=$(k2_count "$name" background completed)
	stream "$disk" ios=100000 errors=2 >"$SCRATCH/streams" 2>&1 &
	streams=$!
	while [ "$(k2_count "$name" background completed)" -lt $((before + 20)) ]; do sleep 0.05; done
	echo 1 >"$pci/remove"
	wait $streams || fail "$(cat "$SCRATCH/streams")"
	expect "$name: processes that saw the removal" \
		"$(grep -vc "failed 0" "$SCRATCH/streams")" "$JOBS"
	expect "module users" "$(cat /sys/module/k2/refcnt)" 0
	echo "$name: removed under load"
done
rmmod k2
insmod "$STEADY_MODULE_K2"
