#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The guest's part of steady_lab/figures/direct_path.py: prints the result of the caller for each line of
# $PWD/cases. A line is FILE HOW read|write BYTES CALLS sequential|periodic|random. FILE is one of:
#   block       the card's block device.
#   ext4        a file of $FILE_MIB MiB on it; writes are to a new one.
#   fragmented  a file whose blocks are apart.
#   char        the card as a character device; these come last.
#   nvme, nvme-char  an NVMe drive, and its character device for passthrough.
# Nothing is in memory before each. $COUNTERS: see caller.c; or `events`: each case leaves what the
# kernel's trace has of its calls in $PWD/events.NUMBER, numbered from 0.
STEADY_TESTS=/run/steadyio/project/tests/kernel
# shellcheck source=../kernel/lib.sh
. "$STEADY_TESTS/lib.sh"
# shellcheck source=reserved_memory.sh
. "$STEADY_TESTS/../bench/reserved_memory.sh"
set -e

MOUNT=/run/scratch/card
FRAGMENTED_BYTES=$((8 << 20))

mounted() {
	mountpoint -q $MOUNT && return
	mkdir -p $MOUNT
	mkfs.ext4 -q -b 4096 -E lazy_itable_init=0,lazy_journal_init=0 $EMMC_NODE
	mount $EMMC_NODE $MOUNT
}

# file_of FILE OP: its path, made as it has to be.
file_of() {
	case $1 in
	block) echo $EMMC_NODE ;;
	nvme) echo /dev/nvme0n1 ;;
	nvme-char) echo /dev/ng0n1 ;;
	ext4)
		mounted
		rm -f $MOUNT/written
		[ -e $MOUNT/read ] ||
			dd if=/dev/zero of=$MOUNT/read bs=1M count="$FILE_MIB" oflag=direct 2>/dev/null
		[ "$2" = write ] && echo $MOUNT/written || echo $MOUNT/read
		;;
	fragmented)
		mounted
		[ -e $MOUNT/fragmented ] ||
			"$FRAGMENT" $MOUNT/fragmented $MOUNT/other $FRAGMENTED_BYTES
		echo $MOUNT/fragmented
		;;
	char)
		! mountpoint -q $MOUNT || umount $MOUNT
		[ -e $CHARDISK_NODE ] || ls /sys/bus/mmc/devices >$CHARIO/take
		echo $CHARDISK_NODE
		;;
	esac
}

# forget: what was read; a file system also keeps where its files are.
forget() {
	sync
	if mountpoint -q $MOUNT; then
		umount $MOUNT
		mount $EMMC_NODE $MOUNT
	fi
	echo 3 >/proc/sys/vm/drop_caches
}

# traced COMMAND...: with the events of a call's way to the card and back, system calls by number
# (pread64 17, ioctl 16).
TRACE=/sys/kernel/tracing/instances/direct_path
traced() {
	mkdir $TRACE
	echo 16384 >$TRACE/buffer_size_kb
	# Counts instructions, too, and is shown with all of its digits.
	echo x86-tsc >$TRACE/trace_clock
	echo 'id == 17 || id == 16' >$TRACE/events/raw_syscalls/filter
	for event in raw_syscalls/sys_enter raw_syscalls/sys_exit mmc/mmc_request_start \
		mmc/mmc_request_done irq/irq_handler_entry; do
		echo 1 >$TRACE/events/$event/enable
	done
	"$@"
	echo 0 >$TRACE/tracing_on
	cat $TRACE/trace >events.$number
	rmdir $TRACE
}

number=0
knob mmcblk0 scheduler none
while read -r file how op bytes calls order; do
	path=$(file_of "$file" "$op")
	case $how in
	*+dax) reserved_memory ;;
	esac
	forget
	if [ "$COUNTERS" = events ]; then
		traced "$CALLER" "$path" "$how" "$op" "$bytes" "$calls" "$order"
		number=$((number + 1))
	else
		"$CALLER" "$path" "$how" "$op" "$bytes" "$calls" "$order" "$COUNTERS"
	fi
done <cases
[ ! -e $CHARDISK_NODE ] || ls /sys/bus/mmc/devices >$CHARIO/give
