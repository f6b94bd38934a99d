#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: metadata of a file system goes before the background that came first, and finds a tag
# DEVICE: test-plain
. "$STEADY_TESTS/lib.sh"
set -e

disk=${STEADY_DEVICE#/dev/}
mount=$SCRATCH/mount
# 16 inodes of 256 bytes in a block: one file of each block.
blocks=40
files=$(seq -f "$mount/%03.0f" 1 16 $((16 * blocks)))

mkfs.ext4 -q -b 4096 -I 256 -E lazy_itable_init=0,lazy_journal_init=0,nodiscard "$STEADY_DEVICE"
mkdir "$mount"
mount "$STEADY_DEVICE" "$mount"
(cd "$mount" && seq -f "%03.0f" 1 $((16 * blocks)) | xargs touch)
dd if=/dev/zero of="$mount/bg" bs=1M count=16 conv=fsync status=none
umount "$mount"
mount -o inode_readahead_blks=0 "$STEADY_DEVICE" "$mount"
ls -f "$mount" >/dev/null
use_k2 "$disk" 1 4
knob "$disk" nr_requests 8

# More writers than there are tags, each with 128 KiB outstanding, and the files' inodes read, one by
# one, all of them best effort.
trace_begin k2/k2_dispatch block/block_rq_insert
"$STEADY_TESTS_BIN/direct_io" write "$mount/bg" 0 16384 131072 16 1 &
writer=$!
sleep 0.005
begin_us=$(($(date +%s%N) / 1000))
# shellcheck disable=SC2086 # words
stat -c %i $files >"$SCRATCH/inodes"
stat_us=$(($(date +%s%N) / 1000 - begin_us))
wait $writer
trace_end >"$SCRATCH/events"
expect "inodes" "$(grep -c . "$SCRATCH/inodes")" $blocks
echo "$blocks inode blocks read in $stat_us us"
# A read of 4 KiB takes 116 us, a piece before it 236 us. With a wait for a tag it is 20 ms each.
expect_at_most "us for all inode blocks" "$stat_us" "$((blocks * 400))"

# The block layer marks metadata with an M. From its insertion to its dispatch, nothing else of the
# background may be dispatched, but for one after 16 dispatches of metadata.
awk -v blocks=$blocks '
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
		exit !(inserted >= blocks && dispatched == inserted)
	}
' "$SCRATCH/events" || fail "$(tail -5 "$SCRATCH/events")"

umount "$mount"
k2_expect_settled "$disk"
knob "$disk" scheduler none
