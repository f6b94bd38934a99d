#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: the emulated NVMe SSD rejects each invalid parameter with key, value and valid range.
# DEVICE: none
# FLAVOUR: base
# The debug kernel of 6.1 keeps KASAN's marks of a module that is gone, and then reports the next user of
# its addresses (lab/kernel/module_shadow).
. "$STEADY_TESTS/lib.sh"

# refused PARAMETER TEXT [MORE]...: what the log must say about it; looked up at the end.
refused() {
	wanted="steady_nvme: $1: $2"
	first=$1
	shift 2
	insmod "$STEADY_MODULE_STEADY_NVME" "$first" "$@" 2>/dev/null && fail "$first was accepted"
	echo "$wanted" >>/run/expected
}

refused capacity_mib=15 "must be a number in 16..4194304"
refused capacity_mib=4194305 "must be a number in 16..4194304"
refused capacity_mib=ten "must be a number in 16..4194304"
refused gc_lag_permille=1001 "must be a number in 0..1000"
refused queues=17 "must be a number in 1..16"
refused queue_entries=1 "must be a number in 2..4096"
refused namespaces=0 "must be a number in 1..16"
refused mdts_kib=2048 "must be a number in 4..1024"
refused mdts_kib=96 "must be a power of two in 4..1024"
refused page_kib=18 "must be a multiple of 4"
refused read_planes=3 "must divide planes"
refused program_jitter_ns=2000000 "must be at most program_ns"
refused gc_reserve_lines=6 "must be less than gc_free_lines"
refused hot_permille=1 "must be at most used_permille"
refused house_period_us=1 "must be at least twice house_ns" house_ns=1000
refused buffer_kib=100 "must be at least planes x page_kib x bits + 20"
refused spare_permille=1 "the flash beyond the capacity must hold gc_free_lines + slc_lines + 3 lines"
refused model="" "must be 1..40 printable characters without spaces"
faults="must be read|write|erase|flush|any:error|timeout:op:1..|sectors:FIRST-LAST|ppm:0..1000000"
refused fault=read:melt:op:1 "$faults"
refused path=/run/none/drive.img "cannot open for reading and writing"
[ -e /sys/module/steady_nvme ] && fail "a module that refused its parameters stays loaded"

log=$(dmesg)
while read -r line; do
	case $log in
	*"$line"*) ;;
	*) fail "the log does not say: $line" ;;
	esac
done </run/expected
