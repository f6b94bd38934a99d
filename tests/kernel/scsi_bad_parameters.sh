#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: insmod rejects every invalid parameter of the SCSI disk, and names key, value and range
# DEVICE: none
# MODULES: sd_mod
. "$STEADY_TESTS/lib.sh"

# refused PARAMETER TEXT: what the log must say about it.
refused() {
	insmod "$STEADY_MODULE_STEADY_SCSI" "$1" 2>/dev/null && fail "$1 was accepted"
	dmesg | grep -qF "steady_scsi: $1: $2" || fail "the log does not say: $1: $2"
}

refused slots=0 "must be a number in 1..32"
refused slots=33 "must be a number in 1..32"
refused capacity_mib=0 "must be a number in 1..1048576"
refused read_jitter_ns=100001 "must be a number in 0..100000 (read_base_ns)"
refused name=LONGERTHANSIXTEEN "must be 1..16 printable characters without spaces"
refused path=/run/none/disk.img "cannot open for reading and writing"
[ -e /sys/module/steady_scsi ] && fail "a module that refused its parameters stays loaded"
exit 0
