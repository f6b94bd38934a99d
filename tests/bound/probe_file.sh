#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Probes an eMMC through a file on it; called by test_probe_file.py in the guest, with $STEADY and
# $FILESYSTEM.
set -eu
mkdir /tmp/data
case $FILESYSTEM in
ext4) mkfs.ext4 -q /dev/mmcblk0 ;;
f2fs) mkfs.f2fs -q /dev/mmcblk0 ;;
esac
mount /dev/mmcblk0 /tmp/data
"$STEADY" probe /dev/mmcblk0 --quick --write /tmp/data/probe --out profile.toml
[ ! -e /tmp/data/probe ]
