#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a discard delays real-time by its own length; discard_max_bytes bounds that length
# DEVICE: test-plain
# ALONE: it sets a limit of a queue, and on 6.12 lockdep warns if a SCSI disk appears in the same guest
. "$STEADY_TESTS/lib.sh"
set -e

# 0.25 ms per MiB: 32 ms for 128 MiB.
emmc_reload name=PLAIN capacity_mib=256 read_base_ns=100000 read_per_kib_ns=4000 \
	erase_base_ns=1000000 erase_per_kib_ns=250
disk=${STEADY_DEVICE#/dev/}
use_k2 "$disk" 1 4

# longest_read_ns: of a real-time reader while 128 MiB are discarded again and again
longest_read_ns() {
	rm -f "$SCRATCH/stop"
	while [ ! -e "$SCRATCH/stop" ]; do blkdiscard -l 128M "$STEADY_DEVICE"; done &
	"$STEADY_TESTS_BIN/rt_reader" "$STEADY_DEVICE" 4 30 3000 4 0 read | awk '{ print $2 }'
	touch "$SCRATCH/stop"
	wait
}

whole_ns=$(longest_read_ns)
knob "$disk" discard_max_bytes $((4 << 20))
cut_ns=$(longest_read_ns)
echo "4 KiB reads beside discards of 128 MiB: $whole_ns ns; in pieces of 4 MiB: $cut_ns ns"

expect_at_least "next to whole discards" "$whole_ns" 20000000
# A piece of 2.024 ms, the read's own 0.116, and 5 % for what happens in between.
expect_at_most "next to discards of 4 MiB" "$cut_ns" 2247000

k2_expect_settled "$disk"
knob "$disk" scheduler none
