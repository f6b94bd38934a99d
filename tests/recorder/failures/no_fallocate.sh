#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a file system that cannot preallocate takes a recording
# DEVICE: test-cut
# FLAVOUR: base
. "$STEADY_FAILURES/recorder.sh"

# Without extents ext4 knows no unwritten blocks, and refuses fallocate().
mkfs.ext4 -q -O ^extents,^64bit -J size=4 -E lazy_itable_init=0 "$STEADY_DEVICE" || fail "mkfs"
mkdir -p /run/mnt
mount_card
fallocate -l 4096 /run/mnt/file 2>/dev/null && fail "this file system can preallocate"
record --total 1500KiB || fail "record: $(cat record.err)"
expect "durable" "$(total durable)" 1500
expect "found" "$(found)" 1500
