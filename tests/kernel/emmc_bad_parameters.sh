#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: insmod rejects every invalid parameter with a line naming key, value and range
# DEVICE: none
. "$STEADY_TESTS/lib.sh"

# refused PARAMETER TEXT: what the log must say about it; looked up at the end.
refused() {
	insmod "$STEADY_MODULE_STEADY_EMMC" "$1" 2>/dev/null && fail "$1 was accepted"
	echo "steady_emmc: $1: $2" >>/run/expected
}

refused capacity_mib=0 "must be a number in 1..1048576"
refused capacity_mib=1048577 "must be a number in 1..1048576"
refused capacity_mib=ten "must be a number in 1..1048576"
refused capacity_mib=-1 "must be a number in 1..1048576"
refused units=0 "must be a number in 1..16"
refused units=17 "must be a number in 1..16"
refused stripe_kib=0 "must be a number in 1..1024"
refused queue_depth=33 "must be a number in 0..32"
refused queue_depth=2 "must be 0 or a number in 3..32"
refused read_base_ns=600000000001 "must be a number in 0..600000000000"
refused write_per_kib_ns=10000001 "must be a number in 0..10000000"
refused cache_kib=65537 "must be a number in 0..65536"
refused read_jitter_ns=100001 "must be a number in 0..100000 (read_base_ns)"
refused slow_length_us=1 "must be a number in 0..0 (3/4 of slow_period_us)"
refused name=TOOLONG "must be 1..6 printable characters without spaces"
faults="must be read|write|erase|flush|any:error|timeout:op:1..|sectors:FIRST-LAST|ppm:0..1000000"
for fault in read:error read:error:op:0 read:error:op:1-2 read:error:sectors:5 read:error:ppm:1000001 \
	read:error:sectors:9-8 seek:error:op:1 read:melt:op:1 read:error:when:1 read::op:1 ""; do
	refused "fault=$fault" "$faults"
done
refused path=/run/none/card.img "cannot open for reading and writing"
[ -e /sys/module/steady_emmc ] && fail "a module that refused its parameters stays loaded"

log=$(dmesg)
while read -r line; do
	case $log in
	*"$line"*) ;;
	*) fail "the log does not say: $line" ;;
	esac
done </run/expected
