#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# usage: record.sh FOLDER
#
# Records one small load on a loop device with ftrace and perf at the same time, on the monotonic clock, and
# writes what the tools print of it into FOLDER: the samples host-*.txt that tests/trace_text.rs reads. Needs
# root, tracefs, trace-cmd, perf and fio. Where the kernel is locked down, trace-cmd cannot record; so it is given
# the ring buffer's pages (trace-cmd restore), which it reads like a recording of its own.
set -euo pipefail

out=$(realpath "$1")
tracefs=/sys/kernel/tracing
instance=$tracefs/instances/steady_samples
scratch=$(mktemp -d)
loop=

restore() {
	[ ! -d "$instance" ] || rmdir "$instance"
	! mountpoint -q "$scratch/mnt" || umount "$scratch/mnt"
	[ -z "$loop" ] || losetup -d "$loop"
	rm -rf "$scratch"
}
trap restore EXIT

truncate -s 32M "$scratch/image"
loop=$(losetup -f --show "$scratch/image")
mkfs.ext4 -q -b 4096 -E lazy_itable_init=0,lazy_journal_init=0 "$loop"
mkdir "$scratch/mnt"
mount "$loop" "$scratch/mnt"
sync

CALLS="read write pread64 fsync io_uring_enter"
major=$(lsblk -ndo MAJ:MIN "$loop" | tr -d ' ' | cut -d: -f1)
minor=$(lsblk -ndo MAJ:MIN "$loop" | tr -d ' ' | cut -d: -f2)
dev=$((major << 20 | minor))

# `event|filter` for both tools: only of this load. Its programs have names of their own: loader is dd, ringer fio.
events=()
for path in "$tracefs"/events/block/block_*; do
	name=$(basename "$path")
	case $name in
	*_buffer | *_io_start | *_io_done) continue ;;
	*plug) events+=("block:$name|comm == \"loader\" || comm == \"ringer\"") ;;
	*) events+=("block:$name|dev == $dev") ;;
	esac
done
for call in $CALLS; do
	thread=loader
	[ "$call" != io_uring_enter ] || thread=ringer
	events+=("syscalls:sys_enter_$call|comm == \"$thread\"" "syscalls:sys_exit_$call|comm == \"$thread\"")
done
for name in io_uring_submit_req io_uring_complete; do events+=("io_uring:$name|comm == \"ringer\""); done
for name in writeback_single_inode writeback_single_inode_start; do
	events+=("writeback:$name|name == \"$major:$minor\"")
done
for name in jbd2_start_commit jbd2_end_commit; do events+=("jbd2:$name|dev == $dev"); done
events+=("sched:sched_process_fork|comm == \"starter\"" "irq:irq_handler_entry|" "irq:irq_handler_exit|")
events+=("filemap:mm_filemap_add_to_page_cache|s_dev == $dev")

mkdir "$instance"
echo mono >"$instance/trace_clock"
echo 8192 >"$instance/buffer_size_kb"
perf_events=()
for event in "${events[@]}"; do
	name=${event%%|*} filter=${event#*|}
	perf_events+=(-e "$name")
	if [ -n "$filter" ]; then
		echo "$filter" >"$instance/events/${name/:/\/}/filter"
		perf_events+=(--filter "$filter")
	fi
	echo 1 >"$instance/events/${name/:/\/}/enable"
done

cp "$(command -v dd)" "$scratch/loader"
cp "$(command -v fio)" "$scratch/ringer"
cp "$(command -v dash)" "$scratch/starter"
cat >"$scratch/load.sh" <<EOF
set -e
sleep 0.3
$scratch/loader if=$loop of=/dev/null bs=4k count=4 iflag=direct status=none
$scratch/loader if=/dev/zero of=$scratch/mnt/data bs=32k count=4 conv=fsync status=none
$scratch/loader if=/dev/zero of=$scratch/mnt/log bs=16k count=2 oflag=direct status=none
echo 1 >/proc/sys/vm/drop_caches
ionice -c 1 -n 2 $scratch/loader if=$scratch/mnt/data of=/dev/null bs=64k status=none
$scratch/ringer --name=ring --filename=$scratch/mnt/ring --ioengine=io_uring --direct=1 --rw=randrw --bs=4k \\
	--size=64k --iodepth=4 --thread --output=/dev/null
sleep 0.3
EOF
perf record -q -a -k mono -o "$scratch/perf.data" "${perf_events[@]}" -- "$scratch/starter" "$scratch/load.sh"
echo 0 >"$instance/tracing_on"

# keep NAME [LINES]: only what the load's own threads and the kernel's did, with 10 interrupts, on a kernel that is
# called by its release alone.
comms='starter|loader|ringer|ionice|sleep|kworker/[^ ]*|jbd2/[^ ]*|ksoftirqd?(/[0-9]*)?|<idle>|swapper|<\.\.\.>'
keep() {
	grep -E "^#|^cpus=|^ *($comms)(-| +[0-9])" | sed -E 's/ on 6\.[0-9]+\.[0-9][^ ]*$/ on 6.18.0/' |
		awk -v most="${2:-100000}" 'NR <= most && (!/irq_handler/ || ++interrupts <= 10)' >"$out/host-$1.txt"
}
keep trace <"$instance/trace"
echo 1 >"$instance/options/record-tgid"
keep tgid 60 <"$instance/trace"
echo 0 >"$instance/options/record-tgid"
echo 1 >"$instance/options/latency-format"
keep latency 60 <"$instance/trace"
echo 0 >"$instance/options/latency-format"
echo 0 >"$instance/options/irq-info"
keep no-irq-info 60 <"$instance/trace"

pages=()
for cpu in "$instance"/per_cpu/cpu*; do
	page=$scratch/$(basename "$cpu")
	# It never ends by itself: without tracing, there is nothing more to wait for.
	timeout 1 cat "$cpu/trace_pipe_raw" >"$page" || true
	pages+=("$page")
done
trace-cmd restore -c -o "$scratch/head.dat" 2>/dev/null
trace-cmd restore -i "$scratch/head.dat" -o "$scratch/trace.dat" "${pages[@]}" >/dev/null
trace-cmd report -i "$scratch/trace.dat" 2>/dev/null | keep report 60
trace-cmd report -t -i "$scratch/trace.dat" 2>/dev/null | keep report-t
trace-cmd report -l -i "$scratch/trace.dat" 2>/dev/null | keep report-l 60
perf script -i "$scratch/perf.data" 2>/dev/null | keep perf 60
perf script --ns -F comm,pid,tid,cpu,time,event,trace -i "$scratch/perf.data" 2>/dev/null | keep perf-fields-ns
[ -z "${KEEP_TRACE_DAT:-}" ] || cp "$scratch/trace.dat" "$KEEP_TRACE_DAT"
