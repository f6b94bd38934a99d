#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# In the guest, on its second serial line: runs the scripts whose names machine.py sends, with what
# they print on that line, and says how each ended.
stty -echo
modprobe 9pnet_virtio
mkdir -p /media/share
mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=none share /media/share
echo "agent: ready"
while read -r script; do
	sh "/media/share/$script"
	echo "agent: status $?"
done
