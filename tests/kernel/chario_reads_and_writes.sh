#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: read, write, lseek and fsync behave as on a block device with O_DIRECT
# DEVICE: test-plain
# MODULES: chario
# COMPAT: iter_segment.h
. "$STEADY_TESTS/lib.sh"
set -e

size=16777216
for queue in 0 8; do
	emmc_reload capacity_mib=16 cache_kib=64 queue_depth=$queue
	chario_take

	# Data written through one is read through the other.
	pattern first 1000000 | head -c 999936 >/run/wanted
	dd if=/run/wanted of=$CHARDISK_NODE bs=333312 oflag=direct 2>/dev/null
	dd if=$CHARDISK_NODE of=/run/found bs=512 count=1953 2>/dev/null
	cmp -n 999936 /run/wanted /run/found
	expect "command queue" "$(cat /sys/bus/mmc/devices/mmc0:0001/cmdq_en)" 0
	chario_give
	cmp -n 999936 /run/wanted /dev/mmcblk0
	[ $queue = 0 ] || expect "command queue" "$(cat /sys/bus/mmc/devices/mmc0:0001/cmdq_en)" 1
	chario_take

	# Every way of asking, at odd places in memory.
	for via in pread preadv transfer buffer; do
		expect "$via write" "$(chardisk write via=$via offset=1048576 bytes=69632 memory=1536 fill=7)" \
			"69632 commands $([ $via = preadv ] && echo 2 || echo 1)"
		expect "$via read" "$(chardisk read via=$via offset=1048576 bytes=69632 memory=512)" \
			"69632 commands $([ $via = preadv ] && echo 2 || echo 1) content 7 7"
		expect "$via empty" "$(chardisk read via=$via bytes=0 memory=0)" \
			"$([ $via = preadv ] && echo EINVAL || echo "0 commands 0")"
	done

	# Larger than a chunk and a command; larger than the device.
	expect "large" "$(chardisk read bytes=9437184)" \
		"9437184 commands 72 content $(head -c 1 /run/wanted | od -An -tu1 | tr -d ' ') 0"
	expect "to the end" "$(chardisk read offset=$((size - 4096)) bytes=16384)" "4096 commands 1 content 0 0"
	expect "at the end" "$(chardisk read offset=$size)" "0 commands 0"
	expect "write to the end" "$(chardisk write offset=$((size - 512)) bytes=1024)" "512 commands 1"
	expect "write at the end" "$(chardisk write offset=$size)" ENOSPC
	for via in pread transfer buffer; do
		expect "$via offset" "$(chardisk read via=$via offset=100)" EINVAL
		expect "$via length" "$(chardisk read via=$via bytes=100)" EINVAL
		expect "$via memory" "$(chardisk read via=$via memory=4)" EINVAL
	done
	for via in pread transfer; do
		expect "$via write to a file for reading" "$(chardisk write via=$via open=r)" EBADF
		expect "$via read from a file for writing" "$(chardisk read via=$via open=w)" EBADF
	done
	expect "read from a file for reading" "$(chardisk read open=r bytes=512)" \
		"512 commands 1 content $(head -c 1 /run/wanted | od -An -tu1 | tr -d ' ') $(head -c 512 /run/wanted | tail -c 1 | od -An -tu1 | tr -d ' ')"

	# Seeking: to a block, and nowhere else.
	dd if=$CHARDISK_NODE of=/run/found bs=512 skip=2048 count=1 2>/dev/null
	[ "$(od -An -tu1 -N1 /run/found | tr -d ' ')" = 7 ]
	dd if=$CHARDISK_NODE of=/dev/null bs=512 iflag=skip_bytes skip=100 count=1 2>/run/dd && fail "odd seek"
	grep -q "Invalid argument" /run/dd

	# Commands of 32 blocks, as in the paper; no longer than what the host takes.
	echo 16 >$CHARIO_KNOBS/command_kib
	expect "32 blocks" "$(chardisk read bytes=65536 level=0 via=buffer | cut -d ' ' -f -3)" "65536 commands 4"
	echo 0 >$CHARIO_KNOBS/command_kib
	expect "as large as the host takes" \
		"$(chardisk read bytes=4194304 level=0 via=transfer | cut -d ' ' -f -3)" "4194304 commands 8"
	for value in -1 x 4097 "" "1 2"; do
		(echo "$value" >$CHARIO_KNOBS/command_kib) 2>/dev/null && fail "command_kib '$value'"
		(echo "$value" >$CHARIO_KNOBS/bg_kib) 2>/dev/null && fail "bg_kib '$value'"
	done
	(echo 0 >$CHARIO_KNOBS/bg_kib) 2>/dev/null && fail "bg_kib 0"

	# Durability: the card's cache is emptied by fsync, and not used by O_DSYNC.
	expect "fsync" "$(chardisk fsync)" 0
	expect_at_least "flushes" "$(emmc_stat flushes)" 1
	expect "cache" "$(emmc_stat cached_kib)" 0
	chardisk write bytes=4096 >/dev/null
	expect "cache" "$(emmc_stat cached_kib)" 4
	chardisk write bytes=4096 durable=1 offset=8192 >/dev/null
	chardisk write bytes=4096 durable=1 offset=16384 via=buffer >/dev/null
	expect "cache" "$(emmc_stat cached_kib)" 4
	expect "fsync" "$(chardisk fsync)" 0
	expect "cache" "$(emmc_stat cached_kib)" 0

	# Discard: the data there is gone, its neighbours are not.
	chardisk write bytes=16384 fill=9 >/dev/null
	before=$(emmc_stat erases)
	expect "discard" "$(chardisk discard offset=4096 bytes=4096)" 0
	expect "erases" "$(emmc_stat erases)" $((before + 1))
	expect "before it" "$(chardisk read bytes=4096)" "4096 commands 1 content 9 9"
	expect "behind it" "$(chardisk read offset=8192 bytes=8192)" "8192 commands 1 content 9 9"
	expect "discard of all" "$(chardisk discard bytes=$size)" 0
	expect "discard beyond the end" "$(chardisk discard bytes=$((size + 512)))" ERANGE
	expect "odd discard" "$(chardisk discard bytes=100)" EINVAL
	expect "discard of a file for reading" "$(chardisk discard open=r)" EBADF
	chario_give
done
