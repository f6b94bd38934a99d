# shellcheck shell=sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Sourced by direct_path.sh and tests/stock/reserved_region.sh.

# reserved_memory: makes /dev/dax0.0 of the region that the kernel's argument memmap=SIZE!START
# reserved, as `ndctl create-namespace -m devdax -M mem` does.
ND=/sys/bus/nd
reserved_memory() {
	[ ! -e /dev/dax0.0 ] || return 0
	for module in nd_e820 nd_pmem dax_pmem device_dax; do
		modprobe -d /run/steadyio/kernel $module
	done
	echo namespace0.0 >$ND/drivers/nd_pmem/unbind
	seed=$(cat $ND/devices/region0/dax_seed)
	cat /proc/sys/kernel/random/uuid >$ND/devices/"$seed"/uuid
	echo ram >$ND/devices/"$seed"/mode
	echo namespace0.0 >$ND/devices/"$seed"/namespace
	echo "$seed" >$ND/drivers/dax_pmem/bind
	[ -e /dev/dax0.0 ] || fail "no /dev/dax0.0"
}
