#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: the emulated NVMe SSD keeps data of two namespaces; discarded blocks read as zeroes
# DEVICE: test-nvme
. "$STEADY_TESTS/lib.sh"

expect "sectors" "$(cat /sys/block/nvme0n1/size) $(cat /sys/block/nvme0n2/size)" "262144 262144"
expect "model" "$(tr -d ' ' </sys/class/nvme/nvme0/model)" TEST-NVME
expect "largest request, KiB" "$(knob nvme0n1 max_hw_sectors_kb)" 256
expect "write cache" "$(knob nvme0n1 write_cache)" "write back"

pattern one 4000000 | head -c 3999744 >/run/one
pattern two 4000000 | head -c 3999744 >/run/two
for name in one two; do
	[ $name = one ] && node=/dev/nvme0n1 || node=/dev/nvme0n2
	dd if=/run/$name of="$node" bs=512K oflag=direct conv=fsync 2>/dev/null || fail "write $name"
done
echo 3 >/proc/sys/vm/drop_caches
cmp -n 3999744 /run/one /dev/nvme0n1 || fail "content of the first namespace"
cmp -n 3999744 /run/two /dev/nvme0n2 || fail "content of the second namespace"
expect_at_least "flushes" "$(nvme_stat flushes)" 2

blkdiscard -o 1M -l 1M /dev/nvme0n1 || fail "discard"
blkdiscard -z -o 2M -l 512K /dev/nvme0n1 || fail "zeroes"
expect_at_least "discards" "$(nvme_stat discards)" 1
dd if=/dev/nvme0n1 of=/run/zeroes bs=512K skip=2 count=3 iflag=direct 2>/dev/null || fail "read"
expect "bytes left" "$(tr -d '\0' </run/zeroes | wc -c)" 0

# A reset in between loses nothing.
echo 1 >/sys/class/nvme/nvme0/reset_controller || fail "reset"
dd if=/dev/nvme0n2 bs=4096 count=100 iflag=direct 2>/dev/null | cmp -n 409600 - /run/two ||
	fail "content after a reset"
expect "inflight" "$(nvme_stat inflight)" 0
