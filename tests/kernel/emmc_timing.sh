#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: at queue depth 1 the block layer sees the modelled time plus a few us
# DEVICE: test-plain
# FLAVOUR: base
. "$STEADY_TESTS/lib.sh"

slack_us=4

# seen_us dd-options: mean time of one command, from dd's own clock
seen_us() {
	dd "$@" count=100 2>/run/dd || fail "dd $*: $(cat /run/dd)"
	awk -F, '/copied/ { split($(NF - 1), s, " "); printf "%d", s[1] * 10000 }' /run/dd
}

# check WHAT KIB MODELLED-US SEEN-US
check() {
	echo "$1 $2 KiB: modelled $3 us, seen $4 us"
	if [ "$4" -lt "$3" ] || [ "$4" -gt $(($3 + slack_us)) ]; then
		fail "$1 of $2 KiB: modelled $3 us, seen $4 us, allowed $slack_us us more"
	fi
}

for kib in 4 16 64 128 512; do
	check read $kib $((100 + 4 * kib)) \
		"$(seen_us if=/dev/mmcblk0 of=/dev/null bs=${kib}k iflag=direct)"
	# A write ends with the CMD13 that the kernel sends: 10 us in this spec.
	check write $kib $((210 + 8 * kib)) \
		"$(seen_us if=/dev/zero of=/dev/mmcblk0 bs=${kib}k oflag=direct)"
done
