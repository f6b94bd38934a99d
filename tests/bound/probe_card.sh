#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Probes the card for $LENGTH with `steady` at $STEADY, all of it or, if $WHERE is a file system, through a
# file on that; called by probing.py in the guest.
set -eu
write=/tmp/data/probe
case $WHERE in
raw) write=$STEADY_DEVICE ;;
ext4) mkfs.ext4 -q "$STEADY_DEVICE" ;;
f2fs) mkfs.f2fs -q "$STEADY_DEVICE" ;;
esac
if [ "$WHERE" != raw ]; then
	mkdir /tmp/data
	mount "$STEADY_DEVICE" /tmp/data
fi
"$STEADY" probe "$STEADY_DEVICE" "$LENGTH" --write "$write" --out profile.toml
[ ! -e /tmp/data/probe ]
