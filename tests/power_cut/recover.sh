#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# For each NAME.img: a card with this content gets power, the file system is mounted (and its journal
# replayed; where that fails, e2fsck repairs it, as at a boot), $POWER_CUT_RECOVER runs, and the folder kept
# is copied to NAME/. The card's log of it is in NAME.log.
# shellcheck source=../kernel/lib.sh
. "$STEADY_TESTS/lib.sh"

mount_card() {
	mount -t ext4 -o noatime "$EMMC_NODE" /run/mnt
}

mkdir /run/mnt
for image in *.img; do
	name=${image%.img}
	# shellcheck disable=SC2086
	insmod "$STEADY_MODULE_STEADY_EMMC" $POWER_CUT_CARD path="$PWD/$image" write_log="$PWD/$name.log" ||
		fail "insmod"
	emmc_wait
	mkdir "$name"
	# ext4's superblock is two sectors long: torn between them, only e2fsck knows the way back.
	if ! mount_card; then
		e2fsck -fy "$EMMC_NODE" >"$name/e2fsck" 2>&1
		mount_card || echo "mount" >"$name/failed"
	fi
	if [ ! -e "$name/failed" ]; then
		sh -c "$POWER_CUT_RECOVER" >"$name/recovered" 2>"$name/errors" || echo "recover" >"$name/failed"
		cp -r /run/mnt/kept "$name/" || echo "copy" >"$name/failed"
		umount /run/mnt || fail "umount"
	fi
	rmmod steady_emmc || fail "rmmod"
done
