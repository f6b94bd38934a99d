#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# A reader alone, next to a task that computes, and the same with the card's workers raised; called by
# test_busy_task.py in the guest, with reader.c compiled in the work directory.
set -eu
policies() {
	for file in /proc/[0-9]*/stat; do
		case $(cut -d " " -f 2 "$file") in
		"(kworker/"*:*H* | "(ksoftirqd/"*) chrt -p "$(basename "$(dirname "$file")")" ;;
		esac
	done | grep -c FIFO || true
}
raised() { "$STEADY" with --device /dev/mmcblk0 --kworkers-fifo 60 -- "$@"; }
for scheduler in none k2; do
	echo $scheduler >/sys/block/mmcblk0/queue/scheduler
	echo "$scheduler alone $(./reader /dev/mmcblk0)"
	echo "$scheduler task $(./reader /dev/mmcblk0 task)"
	echo "$scheduler raised $(raised ./reader /dev/mmcblk0 task)"
done
echo "k2 background $(./reader /dev/mmcblk0 background)"
echo "k2 background-raised $(raised ./reader /dev/mmcblk0 task background)"
echo "left $(policies)"
