#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a power cut loses what was not flushed and nothing else, and then the card is dead
# DEVICE: test-file
# ALONE: the card's file has a fixed place in the work folder
. "$STEADY_TESTS/lib.sh"

# Four pages of text to write, and one of zeroes.
for page in flushed fua newer cached; do
	pattern $page 4096 >/run/$page
done
head -c 4096 /dev/zero >/run/zeroes

# put PAGE NAME [dd options]
put() {
	page=$1 name=$2
	shift 2
	dd if="/run/$name" of=/dev/mmcblk0 bs=4096 seek="$page" "$@" 2>/dev/null
}

# holds PAGE NAME WHEN
holds() {
	dd if=/dev/mmcblk0 bs=4096 skip="$1" count=1 iflag=direct 2>/dev/null | cmp -s - "/run/$2" ||
		fail "$3, page $1 is not '$2'"
}

check() {
	expect "write cache" "$(cat /sys/block/mmcblk0/queue/write_cache)" "write back"
	put 1 flushed oflag=direct conv=fsync || fail "flushed write"
	[ "$(emmc_stat flushes)" -gt 0 ] || fail "fsync did not reach the card as a flush"
	durable=$(emmc_stat writes_durable)
	put 2 fua oflag=direct,dsync || fail "FUA write"
	[ "$(emmc_stat writes_durable)" -gt "$durable" ] || fail "FUA did not reach the card"
	put 3 zeroes oflag=direct conv=fsync || fail "zeroes"
	put 1 newer oflag=direct || fail "cached write over a flushed one"
	put 3 cached oflag=direct || fail "cached write"
	holds 1 newer "before the cut"
	holds 3 cached "before the cut"

	emmc_power_cut
	dd if=/dev/mmcblk0 of=/run/dead bs=4096 count=1 iflag=direct 2>/dev/null &&
		fail "a card without power answers"
	emmc_unbind
	emmc_bind
	holds 1 flushed "after the cut"
	holds 2 fua "after the cut"
	holds 3 zeroes "after the cut"
	expect "KiB lost" "$(emmc_stat lost_kib)" 8
}

check
rmmod steady_emmc
insmod "$STEADY_MODULE_STEADY_EMMC" capacity_mib=64 cache_kib=512 path=/run/steadyio/work/card.img
emmc_wait
holds 1 flushed "after loading again"
emmc_reload capacity_mib=64 cache_kib=512 queue_depth=8
check
