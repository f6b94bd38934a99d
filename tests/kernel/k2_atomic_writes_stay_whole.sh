#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a write that must not be torn (RWF_ATOMIC) reaches the driver in one piece
# DEVICE: none
# MODULES: sd_mod; scsi_debug dev_size_mb=16 ndelay=20000 atomic_wr=1
# COMPAT: request_atomic.h
# KERNELS: 6.12 7.3
# 6.1 has no such writes.
. "$STEADY_TESTS/lib.sh"
set -e

disk=$(scsi_disk)
expect_at_least "atomic_write_max_bytes" "$(knob "$disk" atomic_write_max_bytes)" 32768
use_k2 "$disk" 1 4

"$STEADY_TESTS_BIN/atomic_write" "/dev/$disk" 32
expect "dispatched" "$(k2_count "$disk" background dispatched)" 1
expect "split" "$(k2_count "$disk" background split)" 0
# The same write without the promise is split.
dd if=/dev/zero of="/dev/$disk" bs=32k count=1 oflag=direct status=none
expect "split" "$(k2_count "$disk" background split)" 7

k2_expect_settled "$disk"
knob "$disk" scheduler none
