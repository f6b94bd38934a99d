#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: the knobs reject bad values with EINVAL and keep the old one
# DEVICE: none
# MODULES: null_blk nr_devices=0
# STOCK: yes
. "$STEADY_TESTS/lib.sh"

# refuses NAME VALUE...: and keeps what it has; "" is a newline alone.
refuses() {
	name=$1
	shift
	"$STEADY_TESTS_BIN/refused" "/sys/block/nullb0/queue/iosched/$name" "$@" || fail "$name"
}

# takes NAME VALUE...
takes() {
	name=$1
	shift
	for value; do
		knob nullb0 "iosched/$name" "$value" || fail "$name refuses $value"
		expect "$name" "$(knob nullb0 "iosched/$name")" "$value"
	done
}

null_blk_create nullb0 blocksize=4096 completion_nsec=10000
knob nullb0 scheduler k2
# null_blk has 64 tags: a device with a queue.
for default in inflight_max=32 split_kib=0 background_wait_ms_max=0 rt_block_us=440 rt_idle_ms=10000; do
	expect "default ${default%=*}" "$(knob nullb0 "iosched/${default%=*}")" "${default#*=}"
done

takes inflight_max 1 1024 7
refuses inflight_max 0 -1 1025 4294967296 99999999999999999999 seven 7x "7 8" 0x7 7.5 ""
takes split_kib 4 12 1048576 0 8
refuses split_kib -4 2 6 1048577 1048580 4294967296 4294967300 four 4k "4 4" 0x4 4.0 ""
takes background_wait_ms_max 1 60000 0 9
refuses background_wait_ms_max -1 60001 4294967296 4294967300 nine 9ms "9 9" 0x9 9.0 ""
for name in rt_block_us rt_idle_ms; do
	takes "$name" 1 1000000 0 11
	refuses "$name" -1 3600001 4294967296 4294967300 nine 9ms "9 9" 0x9 9.0 ""
done

knob nullb0 iosched/device_model "read 512 5870 200" || fail "device_model refuses 512 KiB"
expect "read, given by hand" "$(knob nullb0 iosched/device_model | cut -d' ' -f1-3 | head -n 1)" \
	"read least:6070 reserve:200"
knob nullb0 iosched/device_model "read 4 100 9 read 512 5870 200 write 4 200 9 write 512 9000 300" ||
	fail "device_model refuses four"
expect "writes, given by hand" "$(knob nullb0 iosched/device_model | sed -n '2s/ reserve.*//p')" "write least:500"
refuses device_model "read 512 5870 200 write 4 200" "read 512 5870 200 " \
	"write 4 1 1 write 4 1 1 write 4 1 1 write 4 1 1 write 4 1 1" \
	"read 512 5870" "read 0 1 1" "read 4 0 0" "erase 4 1 1" "read 1048577 1 1" "read 4294967299 1 1" \
	read ""
takes rt_deadline_us "1 4294967294 4294967294 4294967294 4294967294 4294967294 0 8"
refuses rt_deadline_us 7 "1 2 3 4 5 6 7" "1 2 3 4 5 6 7 8 9" "1 2 3 4 5 6 7 -8" "1 2 3 4 5 6 7 8us" \
	"1  2 3 4 5 6 7 8" "4294967296 2 3 4 5 6 7 8" ""

knob nullb0 scheduler none
null_blk_remove nullb0
