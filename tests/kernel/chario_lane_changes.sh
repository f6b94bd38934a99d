#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a lane obeys its partition as it is now: resized, read-only; no other change is possible
# DEVICE: test-plain
# MODULES: chario
# COMPAT: claim_disk.h
# CHARIO_ROUNDS [8]: of random sizes under load; CHARIO_SEED [1]: the soak sets them.
. "$STEADY_TESTS/lib.sh"

emmc_reload capacity_mib=64 cache_kib=64
# 1 MiB that nobody uses, 32 MiB for the lane, and room behind it.
emmc_partition 2048 2048 18432 65536
mkdir -p /run/mounted
echo mmcblk0p2 >$CHARIO/lane || fail "lane"
expect "size" "$(cat $CHARIO_KNOBS/size_bytes)" 33554432

delpart /dev/mmcblk0 2 2>/dev/null && fail "deleted under a lane"
blockdev --rereadpt /dev/mmcblk0 2>/dev/null && fail "table read again under a lane"

# expect_end BYTES: what it has ends there.
expect_end() {
	expect "size" "$(cat $CHARIO_KNOBS/size_bytes)" "$1"
	expect "size by the ioctl" "$(chardisk info | grep '^bytes ')" "bytes $1"
	expect "region" "$(chardisk region)" "0+$1 0"
	for via in pread transfer buffer; do
		expect "write at the end" "$(chardisk write via=$via offset="$1")" ENOSPC
		expect "write over the end" \
			"$(chardisk write via=$via offset=$(($1 - 2048)) | cut -d ' ' -f 1)" 2048
		expect "read over the end" \
			"$(chardisk read via=$via offset=$(($1 - 2048)) | cut -d ' ' -f 1)" 2048
	done
	expect "discard over the end" "$(chardisk discard offset=$(($1 - 2048)))" ERANGE
}

resizepart /dev/mmcblk0 2 16384 || fail "smaller"
expect_end 8388608
resizepart /dev/mmcblk0 2 32768 || fail "larger"
expect_end 16777216

# read_only_while COMMAND...: also files that were open for writing before.
read_only_while() {
	"$@" || fail "$*"
	expect "open for writing" "$(chardisk read open=w)" EROFS
	dd if=/dev/zero bs=4096 count=1 >&9 2>/run/said && fail "$*: written"
	grep -q "Read-only file system" /run/said || fail "$*: $(cat /run/said)"
	expect "read" "$(chardisk read open=r | cut -d ' ' -f 1)" 4096
	expect "discard" "$(chardisk discard open=w)" EROFS
	expect "may be written" "$(($(chardisk info open=r | sed -n 's/^capabilities //p') & 1))" 0
}
exec 9>$CHARDISK_NODE
read_only_while blockdev --setro /dev/mmcblk0p2
blockdev --setrw /dev/mmcblk0p2
expect "write again" "$(chardisk write | cut -d ' ' -f 1)" 4096
read_only_while blockdev --setro /dev/mmcblk0
blockdev --setrw /dev/mmcblk0
expect "write again" "$(chardisk write | cut -d ' ' -f 1)" 4096
exec 9>&-

# A file system in the room that a smaller lane leaves, next to writes to all that the lane has.
random=${CHARIO_SEED:-1}
head -c 1048576 /dev/zero | tr '\0' A >/run/lane
pattern file 3145728 >/run/wanted
for round in $(seq "${CHARIO_ROUNDS:-8}"); do
	resizepart /dev/mmcblk0 2 65536 || fail "round $round: whole"
	touch /run/going
	(
		while [ -e /run/going ]; do
			i=0
			while dd if=/run/lane of=$CHARDISK_NODE bs=1M seek=$i 2>/dev/null; do
				i=$((i + 1))
			done
		done
	) &
	writer=$!
	sleep 0.0$((random % 90 + 10))
	random=$(((random * 1103515245 + 12345) % 2147483648))
	sectors=$((random / 64 % 4096 * 8 + 8))
	resizepart /dev/mmcblk0 2 $sectors || fail "round $round: $sectors"
	addpart /dev/mmcblk0 3 $((18432 + sectors)) $((65536 - sectors)) || fail "round $round: p3"
	{ mkfs.ext4 -q -F /dev/mmcblk0p3 && mount /dev/mmcblk0p3 /run/mounted; } || fail "round $round: mkfs"
	cp /run/wanted /run/mounted/file || fail "round $round: file"
	sync
	sleep 0.05
	echo 3 >/proc/sys/vm/drop_caches
	cmp /run/wanted /run/mounted/file || fail "round $round: $sectors sectors"
	umount /run/mounted
	rm /run/going
	wait $writer
	fsck.ext4 -f -n /dev/mmcblk0p3 >/run/fsck 2>&1 || fail "round $round: $(cat /run/fsck)"
	delpart /dev/mmcblk0 3 || fail "round $round: delpart 3"
done
echo mmcblk0p2 >$CHARIO/end_lane || fail "end"
