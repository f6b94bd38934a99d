#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The order of levels between threads that send commands to an NVMe namespace: a reader of 4 KiB alone, next
# to four of the background, and as one of them; and a command of the background alone. Called by test_nvme.py in the guest, which reads the results.
set -eu
# Data that is not programmed yet would make the first reads slower.
dd if=/dev/zero of=/dev/nvme0n1 bs=1M count=32 oflag=direct conv=fsync status=none
sleep 1
bench() {
	"$STEADY" direct bench /dev/ng0n1 --count 200 --bytes 32M --json "$@"
}
bench >alone.json
bench --size 128K >command.json
bench --background 4 >background.json
# The shell's priority is inherited.
ionice -c 1 -n 0 -p $$
bench --background 4 >real-time.json
echo "all done"
