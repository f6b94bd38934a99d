#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a partition is a character device while the rest is mounted; the data of both stay intact
# DEVICE: test-plain
# MODULES: chario
# COMPAT: claim_disk.h
. "$STEADY_TESTS/lib.sh"

lane() {
	echo "$1" | LC_ALL=C tee $CHARIO/lane >/dev/null 2>/run/refused
}

for queue in 0 8; do
	emmc_reload capacity_mib=64 queue_depth=$queue cache_kib=64
	# 16 MiB for a file system, 8 MiB for the lane, 8 MiB that nobody uses.
	emmc_partition 2048 32768 34816 16384 51200 16384
	pattern lane$queue 8388608 >/run/before
	dd if=/run/before of=/dev/mmcblk0p2 bs=1M 2>/dev/null
	dd if=/run/before of=/dev/mmcblk0p3 bs=1M conv=fsync 2>/dev/null
	mkfs.ext4 -q -F /dev/mmcblk0p1 || fail "mkfs"
	mkdir -p /run/mounted
	mount /dev/mmcblk0p1 /run/mounted || fail "mount"

	for name in mmcblk0p1 mmcblk0 mmcblk0p9 ram0 "" ../sda mmcblk0p2@8M+512 mmcblk0p2@1; do
		lane "$name" && fail "lane '$name' was accepted"
	done
	lane mmcblk0p1
	grep -q busy /run/refused || fail "mounted: $(cat /run/refused)"

	# Data that is only in the page cache, and not yet on the card, is there.
	pattern cached 65536 | dd of=/dev/mmcblk0p2 bs=65536 conv=notrunc 2>/dev/null
	lane mmcblk0p2 || fail "lane: $(cat /run/refused)"
	lane mmcblk0p2 && fail "twice"
	expect "mode" "$(cat $CHARIO_KNOBS/mode) $(cat $CHARIO_KNOBS/partition)" "lane mmcblk0p2"
	expect "size" "$(cat $CHARIO_KNOBS/size_bytes)" 8388608
	expect "place" "$(chardisk info | grep card_offset)" "card_offset_bytes $((34816 * 512))"
	pattern cached 65536 >/run/cached
	dd if=$CHARDISK_NODE of=/run/found bs=65536 count=1 2>/dev/null
	cmp /run/cached /run/found || fail "cached data"
	mkdir -p /run/other
	mount /dev/mmcblk0p2 /run/other 2>/dev/null && fail "mounted a lane"
	expect "beyond its end" "$(chardisk write offset=8388608)" ENOSPC
	expect "over its end" "$(chardisk write offset=8387584 bytes=4096 | cut -d ' ' -f 1)" 1024

	# Both under load.
	(
		for file in $(seq 12); do
			dd if=/run/before of=/run/mounted/"$file" bs=256K count=4 conv=fsync 2>/dev/null || exit
			cmp -n 1048576 /run/before /run/mounted/"$file" || exit
		done
		echo well >/run/files
	) &
	"$STEADY_TESTS_BIN/chardisk_stress" $CHARDISK_NODE threads=6 transfers=300 || fail "stress"
	wait $!
	expect "files" "$(cat /run/files)" well
	rm /run/files
	[ $queue = 0 ] || expect "command queue" "$(cat /sys/bus/mmc/devices/mmc0:0001/cmdq_en)" 1

	# After its end the partition has what the lane wrote, and its neighbours what they had.
	chardisk write offset=4096 fill=65 >/dev/null
	chardisk fsync >/dev/null
	echo mmcblk0p2 >$CHARIO/end_lane || fail "end"
	[ -e $CHARDISK_NODE ] && fail "$CHARDISK_NODE stays"
	expect "written" "$(dd if=/dev/mmcblk0p2 bs=4096 skip=1 count=1 2>/dev/null | tr -d A | wc -c)" 0
	cmp /run/before /dev/mmcblk0p3 || fail "the partition behind it"
	umount /run/mounted
	fsck.ext4 -f -n /dev/mmcblk0p1 >/run/fsck 2>&1 || fail "$(cat /run/fsck)"

	# The card goes away, or mmcblk lets go of it, while the lane is in use.
	for way in pull unbind unload; do
		lane mmcblk0p2 || fail "lane again: $(cat /run/refused)"
		while dd if=$CHARDISK_NODE of=/dev/null bs=1M 2>/run/dd; do :; done &
		sleep 0.05
		case $way in
		pull) emmc_unbind ;;
		unbind) echo mmc0:0001 >/sys/bus/mmc/drivers/mmcblk/unbind ;;
		unload) echo mmcblk0p2 >$CHARIO/end_lane ;;
		esac || fail "$way"
		wait $!
		grep -qE "No such (device|file)" /run/dd || fail "$way: $(cat /run/dd)"
		[ -e $CHARDISK_NODE ] && fail "$way: the node stays"
		case $way in
		pull) emmc_bind ;;
		unbind) echo mmc0:0001 >/sys/bus/mmc/drivers/mmcblk/bind ;;
		esac
		for _ in $(seq 100); do
			[ -b /dev/mmcblk0p2 ] && break
			sleep 0.01
		done
	done
done

# It gives the card back while memory is short: its work queue has a thread of its own.
grep -qE '^(kworker/R-)?chari' /proc/[0-9]*/comm || fail "no thread of chario"

lane mmcblk0p2 || fail "lane"
rmmod chario || fail "rmmod with a lane"
[ -e $CHARDISK_NODE ] && fail "node without the module"
mkfs.ext4 -q -F /dev/mmcblk0p2 || fail "the claim stays"
insmod "$STEADY_MODULE_CHARIO" || fail "insmod"
