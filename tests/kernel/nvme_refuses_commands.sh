#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: commands that are wrong get the status of the NVMe specification, and the drive goes on
# DEVICE: test-nvme
. "$STEADY_TESTS/lib.sh"

# answers STATUS io|admin OPCODE SLBA BLOCKS DATA_BYTES; 4000 in a status is Do Not Retry
answers() {
	wanted=$1
	kind=$2
	shift 2
	[ "$kind" = io ] && node=/dev/nvme0n1 || node=/dev/nvme0
	expect "answer to $kind $*" \
		"$("$STEADY_TESTS_BIN/nvme_command" "$kind" "$node" "$@" 2>&1)" "status $wanted"
}

sectors=$(cat /sys/block/nvme0n1/size)
answers 0 io 2 0 8 4096
answers 4001 io 0x7f 0 8 0
answers 4001 admin 0xc0 0 1 0
for opcode in 1 2; do # write, read
	answers 4080 io $opcode "$sectors" 8 4096
	answers 4080 io $opcode $((sectors - 7)) 8 4096
	answers 4080 io $opcode 0xfffffffffffffff8 8 4096
	answers 0 io $opcode $((sectors - 8)) 8 4096
	answers 4002 io $opcode 0 513 512 # more than mdts_kib
done
answers 4080 io 8 "$sectors" 8 0 # write zeroes
# The driver maps 512 bytes, so the list of further pages is at address 0: there the kernel's own
# file header is, which is not a list of pages. A write, because it changes no memory.
answers 4013 io 1 0 24 512

expect "refused" "$(nvme_stat refused)" 11
expect "inflight" "$(nvme_stat inflight)" 0
dd if=/dev/nvme0n1 of=/dev/null bs=64k count=4 iflag=direct status=none || fail "no I/O afterwards"
