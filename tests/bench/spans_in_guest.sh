#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Run the lines of the file `plan` on an emulated card with ext4. Each is a name, a tab and a command. Each
# runs first by itself, with fio's results in NAME.alone, then under `steady trace`, in NAME.fio and
# NAME.trace. `whole` gets the name of each whose trace has no gap. The first command fills the file.
#
# Called in the guest by tests/bench/spans.py. $1: steady, $2: where to mount the card.
set -e
steady=$1 mount=$2 node=$STEADY_DISKS
echo none >"/sys/block/${node#/dev/}/queue/scheduler"
# A gibibyte of it: no table of inodes is longer than what is measured.
mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0,nodiscard "$node" 1g
mkdir "$mount"
tab=$(printf '\t')

# With an empty journal, and nothing of the card in memory.
mount_again() {
	! mountpoint -q "$mount" || umount "$mount"
	mount -t ext4 -o no_prefetch_block_bitmaps "$node" "$mount"
}

while IFS=$tab read -r name command <&3; do
	echo "$name"
	eval "set -- $command"
	mount_again
	"$@" --output="$name.alone"
	[ "$name" = fill ] && continue
	mount_again
	status=0
	"$steady" trace --json --worst=1 --device "$node" -- "$@" --output="$name.fio" \
		>"$name.trace" 2>"$name.said" || status=$?
	# 3: the trace has a gap, which its account tells.
	case $status in
	0) echo "$name" >>whole ;;
	3) ;;
	*) cat "$name.said" && exit $status ;;
	esac
done 3<plan
umount "$mount"
