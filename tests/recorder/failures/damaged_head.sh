#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a segment whose head and its copy are damaged is renamed unchanged, and does not keep a recording from starting, with or without room for another
# DEVICE: test-cut
# FLAVOUR: base
. "$STEADY_FAILURES/recorder.sh"

# damage FILE: what the head and the copy of it in the definitions say.
damage() {
	dd if=/dev/urandom of="$1" bs=4k count=4 conv=notrunc 2>/dev/null
	md5sum <"$1" >"$1.sum"
	mv "$1.sum" .
}

# expect_kept NAME: the damaged segment, byte for byte.
expect_kept() {
	md5sum <"$RECORDING/$1.damaged-1" | cmp -s - "$1.sum" || fail "$1 was changed"
	grep -q "$1.damaged-1" record.err || fail "says: $(cat record.err)"
}

# With records or without.
segments() {
	find "$RECORDING" -name 'segment-*.mcap' -o -name 'segment-*.unused' | wc -l
}

make_filesystem
record --total 1500KiB || fail "record: $(cat record.err)"
damage "$RECORDING/segment-00001.mcap"
record --total 10KiB
expect "status with a damaged segment, whose messages are missing" $? 3
expect_kept segment-00001.mcap
expect "segments" "$(segments)" 6

damage "$RECORDING/segment-00002.mcap"
dd if=/dev/zero of=/run/mnt/filler bs=64k 2>/dev/null && fail "the disk does not fill"
record --total 10KiB
expect "status without room for another" $? 3
expect_kept segment-00002.mcap
expect "segments without room" "$(segments)" 5
record --total 10KiB || fail "once more: $(cat record.err)"
rm /run/mnt/filler
record --total 10KiB || fail "with room again: $(cat record.err)"
expect "segments with room again" "$(segments)" 6
