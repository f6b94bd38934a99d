#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a power cut loses what was not flushed and nothing else, and then the card is dead
# DEVICE: test-file
. "$STEADY_TESTS/lib.sh"

at() {
	dd if=/dev/mmcblk0 bs=4096 skip="$1" count=1 iflag=direct 2>/dev/null
}

# put PAGE TEXT [dd options]
put() {
	page=$1 text=$2
	shift 2
	pattern "$text" 4096 | dd of=/dev/mmcblk0 bs=4096 seek="$page" iflag=fullblock "$@" 2>/dev/null
}

check() {
	expect "write cache" "$(cat /sys/block/mmcblk0/queue/write_cache)" "write back"
	put 1 flushed oflag=direct conv=fsync || fail "flushed write"
	flushes=$(emmc_stat flushes)
	[ "$flushes" -gt 0 ] || fail "fsync did not reach the card as a flush"
	durable=$(emmc_stat writes_durable)
	put 2 fua oflag=direct,dsync || fail "FUA write"
	[ "$(emmc_stat writes_durable)" -gt "$durable" ] || fail "FUA did not reach the card"
	put 1 newer oflag=direct || fail "cached write over a flushed one"
	put 3 cached oflag=direct || fail "cached write"
	expect "cached write, before the cut" "$(at 3)" "$(pattern cached 4096)"

	emmc_power_cut
	at 1 >/run/dead && [ -s /run/dead ] && fail "a card without power answers"
	emmc_unbind
	emmc_bind
	expect "flushed" "$(at 1)" "$(pattern flushed 4096)"
	expect "FUA" "$(at 2)" "$(pattern fua 4096)"
	expect "cached write, after the cut" "$(at 3 | tr -d '\0' | wc -c)" 0
	expect "KiB lost" "$(emmc_stat lost_kib)" 8
}

check
rmmod steady_emmc
insmod "$STEADY_MODULE_STEADY_EMMC" capacity_mib=64 cache_kib=512 path=/run/steadyio/work/card.img
emmc_wait
expect "flushed, after loading again" "$(at 1)" "$(pattern flushed 4096)"
emmc_reload capacity_mib=64 cache_kib=512
check
emmc_reload capacity_mib=64 cache_kib=512 queue_depth=8
check
