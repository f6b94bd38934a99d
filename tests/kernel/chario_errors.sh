#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: errors of the card are tried again, cost no good block, and end a call with EIO
# DEVICE: test-plain
# MODULES: chario
. "$STEADY_TESTS/lib.sh"
set -e

stat_file() {
	chardisk stats scope=1 | sed -n "s/^$1 //p"
}

for queue in 0 8; do
	emmc_reload capacity_mib=16 queue_depth=$queue \
		fault=read:error:sectors:2048-2049,write:error:sectors:4096-4099,read:timeout:sectors:6144-6144
	chario_take
	for via in pread transfer buffer; do
		# All before the bad block, then the error; and all behind it.
		expect "$via around a bad block" \
			"$(chardisk read via=$via offset=$((2040 * 512)) bytes=16384 | sed 's/ content.*//')" \
			"$([ $via = pread ] && echo "4096 commands $(chario_stat read_commands)" || echo "4096 then EIO")"
		expect "$via at a bad block" "$(chardisk read via=$via offset=$((2048 * 512)))" EIO
		expect "$via behind it" "$(chardisk read via=$via offset=$((2050 * 512)) bytes=3072 | cut -d ' ' -f 1)" 3072
		expect "$via write before it" \
			"$(chardisk write via=$via offset=$((4092 * 512)) bytes=4096 | cut -d ' ' -f 1)" 2048
		expect "$via write" "$(chardisk write via=$via offset=$((4096 * 512)))" EIO
		expect "$via time-out" "$(chardisk read via=$via bytes=512 offset=$((6144 * 512)))" EIO
		expect "$via elsewhere" "$(chardisk write via=$via bytes=65536 offset=1966080)" "65536 commands 1"
	done
	expect_at_least "retries" "$(chario_stat retries)" 20
	expect "errors" "$(chario_stat errors)" 9
	expect "errors by the ioctl" "$(stat_file errors)" 9
	chario_give
done

# Once, and gone at the second try.
emmc_reload capacity_mib=16 fault=write:error:op:1,write:timeout:op:3,read:error:op:20
chario_take
expect "write with a passing error" "$(chardisk write bytes=65536 fill=5)" "65536 commands 2"
expect "write with a passing time-out" "$(chardisk write bytes=65536 offset=65536 fill=6)" "65536 commands 2"
for read in $(seq 20); do
	expect "read $read" "$(chardisk read bytes=65536 offset=65536 | sed 's/commands . //')" \
		"65536 content 6 6"
done
expect "read" "$(chardisk read bytes=65536)" "65536 commands 1 content 5 5"
expect "retries" "$(chario_stat retries)" 3
expect "errors" "$(chario_stat errors)" 0
chario_give

# A flush and a discard that fail.
emmc_reload capacity_mib=16 cache_kib=64 fault=flush:error:ppm:1000000,erase:error:ppm:1000000
chario_take
chardisk write >/dev/null
expect "fsync" "$(chardisk fsync)" EIO
expect "discard" "$(chardisk discard)" EIO
expect "discard by the ioctl counts" "$(chario_stat errors)" 1
chario_give

# A card without power answers nothing; with power again it is another one.
emmc_reload capacity_mib=16
chario_take
emmc_power_cut
expect "read of a dead card" "$(chardisk read)" EIO
expect "write of a dead card" "$(chardisk write)" EIO
expect_at_least "resets" "$(chario_stat resets)" 1
emmc_unbind
[ -e "$CHARDISK_NODE" ] && fail "node after removal"
emmc_bind
cmp -n 4096 /dev/mmcblk0 /dev/zero
