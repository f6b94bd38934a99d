#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a file system's metadata goes before the background that came first, and is not merged with it
# DEVICE: test-plain
. "$STEADY_TESTS/lib.sh"
set -e

disk=${STEADY_DEVICE#/dev/}
mount=$SCRATCH/mount
files=40

mkfs.ext4 -q -b 4096 -E lazy_itable_init=0,lazy_journal_init=0,nodiscard "$STEADY_DEVICE"
mkdir "$mount"
mount "$STEADY_DEVICE" "$mount"
for folder in $(seq $files); do
	mkdir "$mount/$folder"
	echo "$folder" >"$mount/$folder/file"
done
dd if=/dev/zero of="$mount/bg" bs=1M count=16 conv=fsync status=none
umount "$mount"
mount "$STEADY_DEVICE" "$mount"
use_k2 "$disk" 1 4

# Eight writers, each with 128 KiB outstanding, and a walk over all folders, all of them best effort.
trace_begin k2/k2_dispatch block/block_rq_insert
"$STEADY_TESTS_BIN/direct_io" write "$mount/bg" 0 16384 131072 8 1 &
writer=$!
sleep 0.005
find "$mount" -type f -name file -exec cat {} + >"$SCRATCH/found"
wait $writer
trace_end >"$SCRATCH/events"
expect "files found" "$(grep -c . "$SCRATCH/found")" $files

# The block layer marks metadata with an M. From its insertion to its dispatch, nothing else of the
# background may be dispatched, but for one after 16 dispatches of metadata.
awk '
	function complain(what) { print "FAIL: " what " at: " $0; failed = 1; exit 1 }
	/ block_rq_insert: .* [RW][A-Z]*M/ && !(sector() in waiting) {
		waiting[sector()]; inserted++
		next
	}
	/ k2_dispatch: .* queue 8 / {
		delete waiting[sector()]; dispatched++; streak++
	}
	/ k2_dispatch: .* queue 9 / {
		for (first in waiting)
			if (streak < 16)
				complain("other background before the metadata at " first)
		streak = 0
	}
	function sector() { match($0, /[0-9]+ \+/); return substr($0, RSTART, RLENGTH - 2) }
	END {
		if (failed)
			exit 1
		print inserted " metadata requests inserted, " dispatched " dispatched"
		exit !(inserted >= 20 && dispatched == inserted)
	}
' "$SCRATCH/events" || fail "$(tail -5 "$SCRATCH/events")"

umount "$mount"
k2_expect_settled "$disk"
knob "$disk" scheduler none
