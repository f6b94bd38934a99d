#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Probes an eMMC for $LENGTH with `steady` at $STEADY, all of it or, if $WHERE is a file system, through a
# file on that; called by probing.py in the guest.
set -eu
write=/tmp/data/probe
case $WHERE in
raw) write=/dev/mmcblk0 ;;
ext4) mkfs.ext4 -q /dev/mmcblk0 ;;
f2fs) mkfs.f2fs -q /dev/mmcblk0 ;;
esac
if [ "$WHERE" != raw ]; then
	mkdir /tmp/data
	mount /dev/mmcblk0 /tmp/data
fi
"$STEADY" probe /dev/mmcblk0 "$LENGTH" --write "$write" --out profile.toml
[ ! -e /tmp/data/probe ]
