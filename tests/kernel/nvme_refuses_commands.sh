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
# Memory that is none for data, as a page (16 blocks) and as a list of pages (24). The driver maps
# less than the command is about. With 512 bytes the second entry is 0, where the kernel's image
# begins, which is read-only; with two pages of data it is the second one, taken for a list.
for opcode in 1 2; do
	answers 4004 io $opcode 0 16 512
	answers 4004 io $opcode 0 24 512
	answers 4004 io $opcode 0 24 8192 0x1000       # pages of the list: the kernel's image,
	answers 4004 io $opcode 0 24 8192 0x7ffffffff000 # beyond the memory,
	answers 4004 io $opcode 0 24 8192 0xfffffffffffff000
	answers 4013 io $opcode 0 24 8192 0x5a5a5a5a # and not where a page begins
done
# The same with the data of admin commands: identify (6) has 4096 bytes.
answers 4004 admin 6 1 1 0

expect "refused" "$(nvme_stat refused)" 22
expect "inflight" "$(nvme_stat inflight)" 0
dd if=/dev/nvme0n1 of=/dev/null bs=64k count=4 iflag=direct status=none || fail "no I/O afterwards"
