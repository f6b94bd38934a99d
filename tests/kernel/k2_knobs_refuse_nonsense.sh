#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: the knobs reject bad values with EINVAL and keep the old one
# DEVICE: none
# MODULES: null_blk nr_devices=0
# STOCK: yes
. "$STEADY_TESTS/lib.sh"

refuses() {
	printf '%b' "$2" >"$SCRATCH/value"
	if dd if="$SCRATCH/value" of="/sys/block/$disk/queue/iosched/$1" status=none \
		2>"$SCRATCH/error"; then
		fail "$1 took '$2'"
	fi
	grep -q "Invalid argument" "$SCRATCH/error" || fail "$1 '$2': $(cat "$SCRATCH/error")"
}

null_blk_create nullb0 blocksize=4096 completion_nsec=10000
disk=nullb0
knob nullb0 scheduler k2
# null_blk has 64 tags: a device with a queue.
expect "default inflight_max" "$(knob nullb0 iosched/inflight_max)" 32
expect "default split_kib" "$(knob nullb0 iosched/split_kib)" 0
expect "default background_wait_ms_max" "$(knob nullb0 iosched/background_wait_ms_max)" 0

knob nullb0 iosched/inflight_max 7 || fail "inflight_max refuses 7"
for value in 0 -1 1025 4294967296 99999999999999999999 seven 7x "7 8" 0x7 7.5 '\n'; do
	refuses inflight_max "$value"
	expect "inflight_max after '$value'" "$(knob nullb0 iosched/inflight_max)" 7
done
knob nullb0 iosched/split_kib 8 || fail "split_kib refuses 8"
for value in -4 2 6 1048577 1048580 4294967296 4294967300 four 4k "4 4" 0x4 4.0 '\n'; do
	refuses split_kib "$value"
	expect "split_kib after '$value'" "$(knob nullb0 iosched/split_kib)" 8
done
knob nullb0 iosched/background_wait_ms_max 9 || fail "background_wait_ms_max refuses 9"
for value in -1 60001 4294967296 4294967300 nine 9ms "9 9" 0x9 9.0 '\n'; do
	refuses background_wait_ms_max "$value"
	expect "background_wait_ms_max after '$value'" \
		"$(knob nullb0 iosched/background_wait_ms_max)" 9
done
for value in 1 60000 0; do
	knob nullb0 iosched/background_wait_ms_max $value ||
		fail "background_wait_ms_max refuses $value"
	expect background_wait_ms_max "$(knob nullb0 iosched/background_wait_ms_max)" $value
done
expect "default rt_block_us" "$(knob nullb0 iosched/rt_block_us)" 440
expect "default rt_idle_ms" "$(knob nullb0 iosched/rt_idle_ms)" 10000
for name in rt_block_us rt_idle_ms; do
	knob nullb0 iosched/$name 11 || fail "$name refuses 11"
	for value in -1 3600001 4294967296 4294967300 nine 9ms "9 9" 0x9 9.0 '\n'; do
		refuses $name "$value"
		expect "$name after '$value'" "$(knob nullb0 iosched/$name)" 11
	done
	for value in 1 1000000 0; do
		knob nullb0 iosched/$name $value || fail "$name refuses $value"
		expect $name "$(knob nullb0 iosched/$name)" $value
	done
done
knob nullb0 iosched/device_model "read 512 5870 200" || fail "device_model refuses 512 KiB"
expect "read, given by hand" "$(knob nullb0 iosched/device_model | cut -d' ' -f1-3 | head -n 1)" \
	"read least:6070 reserve:200"
knob nullb0 iosched/device_model "read 4 100 9 read 512 5870 200 write 4 200 9 write 512 9000 300" ||
	fail "device_model refuses four"
expect "writes, given by hand" "$(knob nullb0 iosched/device_model | sed -n '2s/ reserve.*//p')" "write least:500"
for value in "read 512 5870 200 write 4 200" "read 512 5870 200 " "write 4 1 1 write 4 1 1 write 4 1 1 write 4 1 1 write 4 1 1" \
	"read 512 5870" "read 0 1 1" "read 4 0 0" "erase 4 1 1" "read 4294967299 1 1" read '\n'; do
	refuses device_model "$value"
done
deadlines="1 4294967294 4294967294 4294967294 4294967294 4294967294 0 8"
knob nullb0 iosched/rt_deadline_us "$deadlines" || fail "rt_deadline_us refuses $deadlines"
for value in 7 "1 2 3 4 5 6 7" "1 2 3 4 5 6 7 8 9" "1 2 3 4 5 6 7 -8" "1 2 3 4 5 6 7 8us" \
	"1  2 3 4 5 6 7 8" "4294967296 2 3 4 5 6 7 8" '\n'; do
	refuses rt_deadline_us "$value"
	expect "rt_deadline_us after '$value'" "$(knob nullb0 iosched/rt_deadline_us)" "$deadlines"
done
for value in 4 12 1048576 0; do
	knob nullb0 iosched/split_kib $value || fail "split_kib refuses $value"
	expect split_kib "$(knob nullb0 iosched/split_kib)" $value
done
for value in 1 1024; do
	knob nullb0 iosched/inflight_max $value || fail "inflight_max refuses $value"
	expect inflight_max "$(knob nullb0 iosched/inflight_max)" $value
done

knob nullb0 scheduler none
null_blk_remove nullb0
