#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: steady trace on the kernel's SCSI driver, over a disk that takes a known time for each command
# DEVICE: none
# FLAVOUR: base
# MODULES: sd_mod; scsi_debug dev_size_mb=64 ndelay=100000 lbpu=1 max_queue=8
#
# Leaves kept/ and record.json in the work folder for test_driver_times.py. $STEADY: the command.
# shellcheck source=../kernel/lib.sh
. "$STEADY_TESTS/lib.sh"
# shellcheck source=driver_load.sh
. "$STEADY_TESTS/../trace/driver_load.sh"
set -e

trace_load "/dev/$(scsi_disk)"
