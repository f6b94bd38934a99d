# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=sh
# Helpers for the kernel tests; source as:  . "$STEADY_TESTS/lib.sh"

CONFIGFS=/sys/kernel/config
SCRATCH=/run/scratch
mkdir -p "$SCRATCH"

fail() {
	echo "FAIL: $*"
	exit 1
}

# expect WHAT ACTUAL EXPECTED
expect() {
	[ "$2" = "$3" ] || fail "$1 is '$2', expected '$3'"
}

# expect_at_most WHAT ACTUAL LIMIT (integers)
expect_at_most() {
	[ "$2" -le "$3" ] || fail "$1 is $2, expected at most $3"
}

expect_at_least() {
	[ "$2" -ge "$3" ] || fail "$1 is $2, expected at least $3"
}

# fails WHAT TEXT COMMAND...: the command must fail, and say so.
fails() {
	what=$1
	text=$2
	shift 2
	"$@" 2>/run/error && fail "$what: succeeded"
	grep -q "$text" /run/error || fail "$what: $(cat /run/error)"
}

# null_blk_create NAME [KEY=VALUE]...: /dev/NAME, 64 MiB in memory, one queue, done by a timer.
null_blk_create() {
	mountpoint -q "$CONFIGFS" || mount -t configfs configfs "$CONFIGFS"
	folder=$CONFIGFS/nullb/$1
	name=$1
	shift
	mkdir "$folder"
	for setting in size=64 irqmode=2 submit_queues=1 memory_backed=1 max_sectors=1024 "$@"; do
		echo "${setting#*=}" >"$folder/${setting%%=*}" ||
			fail "null_blk refuses $setting"
	done
	echo 1 >"$folder/power"
	[ -b "/dev/$name" ] || fail "no /dev/$name"
}

null_blk_remove() {
	rmdir "$CONFIGFS/nullb/$1"
}

# knob DISK FILE [VALUE]: read or write a file below queue/.
knob() {
	if [ $# -eq 2 ]; then
		cat "/sys/block/$1/queue/$2"
	elif [ "$STEADY_KERNEL" = 7.3 ]; then
		set_while_busy "/sys/block/$1/queue/$2" "$3"
	else
		echo "$3" >"/sys/block/$1/queue/$2"
	fi
}

# set_while_busy FILE VALUE: 7.3 says EBUSY while another change of the disk is under way. The shell
# does not tell errors apart, tee does.
set_while_busy() {
	tries=50
	until error=$(echo "$2" | tee "$1" 2>&1 >/dev/null); do
		tries=$((tries - 1))
		if [ $tries -eq 0 ] || [ "${error%busy}" = "$error" ]; then
			echo "$error" >&2
			return 1
		fi
		sleep 0.1
	done
}

# use_k2 DISK INFLIGHT_MAX SPLIT_KIB: without look-ahead
use_k2() {
	knob "$1" scheduler k2
	knob "$1" iosched/rt_block_us 0
	knob "$1" iosched/inflight_max "$2"
	knob "$1" iosched/split_kib "$3"
}

# k2_count DISK CLASS NAME, such as: k2_count nullb0 background split
k2_count() {
	awk -v key="$2 $3" '$1 " " $2 == key { print $3 }' \
		"/sys/kernel/debug/block/$1/sched/counters"
}

# k2_expect_settled DISK: all inserted requests have completed, and none is in flight.
k2_expect_settled() {
	for class in rt background; do
		inserted=$(k2_count "$1" $class inserted)
		merged=$(k2_count "$1" $class merged)
		completed=$(k2_count "$1" $class completed)
		expect "$class inserted" "$inserted" "$((merged + completed))"
	done
	expect inflight "$(tr '\n' ' ' <"/sys/kernel/debug/block/$1/sched/inflight")" \
		"rt 0 background 0 "
	expect queued "$(cat "/sys/kernel/debug/block/$1/sched/queued")" ""
}

# Hot removal. REMOVE is a command that removes DISK. The processes of io_stream end when they see
# that, so DISK has to read as zeroes before.

# k2_remove_under_load DISK SPLITS REMOVE: once k2 has cut SPLITS times, during random real-time.
k2_remove_under_load() {
	"$STEADY_TESTS_BIN/io_stream" "/dev/$1" jobs=4 rt_jobs=1 ios=100000 region_kib=2048 \
		largest_kib=256 hint_percent=20 errors=2 >"$SCRATCH/streams" &
	streams=$!
	sleep 0.05
	expect_at_least "split before" "$(k2_count "$1" background split)" "$2"
	"$3"
	k2_expect_removed 4
}

# k2_remove_held DISK REMOVE: while k2 holds background back for a real-time request that is due.
# Its timer is set, and ends that when the removal waits for all requests.
k2_remove_held() {
	k2_begin_holding "$1" jobs=4 largest_kib=256
	k2_wait_held "$1"
	k2_remove_with_timer "$1" "$2"
	k2_expect_removed 4
	expect "k2's timer at the removal and in the end" "$(k2_timer)" "set fired"
}

# k2_remove_timer_left DISK REMOVE: just after the real-time request came, earlier than at the
# latest. Its timer is still set when no request is left and k2 goes.
k2_remove_timer_left() {
	k2_begin_holding "$1" jobs=1 depth=1 largest_kib=4 write_percent=0
	k2_wait_held "$1"
	while k2_is_held "$1"; do
		sleep 0.0001
	done
	k2_remove_with_timer "$1" "$2"
	k2_expect_removed 1
	expect "k2's timer at the removal and in the end" "$(k2_timer)" "set cancelled"
}

# k2_begin_holding DISK KEY=VALUE...: a real-time reader, every 50 to 52 ms, and when k2 knows that,
# io_stream with these keys as background.
k2_begin_holding() {
	"$STEADY_TESTS_BIN/rt_reader" "/dev/$1" 4 200 =50000-52000 4 0 read >/dev/null &
	reader_pid=$!
	# The next read is due soon.
	sleep 5.03
	trace_begin timer/hrtimer_start timer/hrtimer_cancel timer/hrtimer_expire_entry
	disk=$1
	shift
	"$STEADY_TESTS_BIN/io_stream" "/dev/$disk" "$@" ios=100000 region_kib=2048 errors=2 \
		>"$SCRATCH/streams" &
	streams=$!
}

# k2_is_held DISK: requests are queued, and none is with the device. Starts no program, which would
# take longer than all else in a test that looks often.
k2_is_held() {
	{
		read -r _ rt
		read -r _ background
	} <"/sys/kernel/debug/block/$1/sched/inflight"
	[ "$rt $background" = "0 0" ] && read -r _ <"/sys/kernel/debug/block/$1/sched/queued"
}

# k2_wait_held DISK: a look may fall between two commands; two looks do not.
k2_wait_held() {
	tries=500
	until k2_is_held "$1" && sleep 0.0001 && k2_is_held "$1"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || fail "k2 holds nothing back"
		sleep 0.0005
	done
}

k2_remove_with_timer() {
	expect_at_least "requests waited for" "$(k2_count "$1" rt anticipated)" 1
	echo removal >/sys/kernel/tracing/trace_marker
	"$2"
	if wait "$reader_pid"; then
		fail "the reader did not see the removal"
	fi
}

# k2_timer: whether k2's timer was set, cancelled, or had fired, at the marker in the trace and in
# the end. A timer that fires is cancelled just before.
k2_timer() {
	trace_end | awk '
		/hrtimer_start: .*function=k2_timer_fired/ {
			match($0, /hrtimer=[^ ]*/)
			timer = substr($0, RSTART, RLENGTH)
			state = "set"
		}
		/hrtimer_cancel: / && timer && index($0, timer) { state = "cancelled" }
		/hrtimer_expire_entry: .*function=k2_timer_fired/ { state = "fired" }
		/tracing_mark_write: removal/ { printf "%s ", state }
		END { print state }'
}

# k2_expect_removed PROCESSES: all of io_stream's have seen it, and k2 has gone.
k2_expect_removed() {
	wait "$streams" || fail "$(cat "$SCRATCH/streams")"
	cat "$SCRATCH/streams"
	expect "processes that saw the removal" "$(grep -vc "failed 0" "$SCRATCH/streams")" "$1"
	expect "module users" "$(cat /sys/module/k2/refcnt)" 0
}

# trace_begin EVENT...: in a clean buffer; trace_end prints it and stops.
trace_begin() {
	echo 0 >/sys/kernel/tracing/tracing_on
	echo mono >/sys/kernel/tracing/trace_clock
	echo >/sys/kernel/tracing/trace
	for event in "$@"; do
		echo 1 >"/sys/kernel/tracing/events/$event/enable"
	done
	echo 1 >/sys/kernel/tracing/tracing_on
}

trace_end() {
	echo 0 >/sys/kernel/tracing/tracing_on
	echo 0 >/sys/kernel/tracing/events/enable
	grep -v '^#' /sys/kernel/tracing/trace
}

# pattern TEXT BYTES: text that differs in every line, so a block in the wrong place shows.
pattern() {
	seq -f "$1 %09.0f" 1 $(($2 / 11 + 1)) | head -c "$2"
}

EMMC_NODE=/dev/mmcblk0
EMMC_DEBUGFS=/sys/kernel/debug/steady_emmc

# emmc_stat KEY: a line of the emulated eMMC's debugfs.
emmc_stat() {
	sed -n "s/^$1 //p" "$EMMC_DEBUGFS/stats"
}

emmc_power_cut() {
	echo 1 >"$EMMC_DEBUGFS/power_cut" || fail "power_cut"
}

emmc_wait() {
	for _ in $(seq 500); do
		[ -b "$EMMC_NODE" ] && true 2>/dev/null <"$EMMC_NODE" && return
		sleep 0.01
	done
	fail "$EMMC_NODE does not appear"
}

# emmc_reload KEY=VALUE...: load the module again with other parameters.
emmc_reload() {
	rmmod steady_emmc || fail "rmmod steady_emmc"
	insmod "$STEADY_MODULE_STEADY_EMMC" "$@" || fail "insmod steady_emmc $*"
	emmc_wait
}

emmc_unbind() {
	echo steady_emmc >/sys/bus/platform/drivers/steady_emmc/unbind || fail "unbind"
}

emmc_bind() {
	echo steady_emmc >/sys/bus/platform/drivers/steady_emmc/bind || fail "bind"
	emmc_wait
}

# scsi_disk: the name of scsi_debug's one disk, once its node is there and nobody probes it any
# longer: on 6.12 the node comes early, and a probe holds the module.
scsi_disk() {
	for _ in $(seq 500); do
		for folder in /sys/bus/pseudo/drivers/scsi_debug/adapter0/host*/target*/*:*/block/*; do
			[ -b "/dev/${folder##*/}" ] && [ "$(cat /sys/module/scsi_debug/refcnt)" = 0 ] &&
				echo "${folder##*/}" && return
		done
		sleep 0.01
	done
	fail "scsi_debug's disk does not appear"
}

# scsi_stat KEY: a line of the emulated SCSI disk's debugfs.
scsi_stat() {
	sed -n "s/^$1 //p" /sys/kernel/debug/steady_scsi/stats
}

# stream_sum FIELD FILE: the sum over io_stream's processes of done, failed or refused.
stream_sum() {
	awk -v key="$1" '{ for (i = 1; i < NF; i++) if ($i == key) sum += $(i + 1) }
		END { print sum + 0 }' "$2"
}

# dispatched COMMAND...: one line "OP SECTOR BYTES QUEUE" for each dispatch by k2 while it ran.
dispatched() {
	trace_begin k2/k2_dispatch
	"$@" >"$SCRATCH/dispatched.out" 2>&1 || fail "$*: $(cat "$SCRATCH/dispatched.out")"
	trace_end | sed -n 's/.*k2_dispatch: [0-9,]* \([RW]\) \([0-9]*\) + \([0-9]*\) bytes queue \([0-9]*\) .*/\1 \2 \3 \4/p'
}

# expect_dispatched "LINE;LINE;..." COMMAND...: exactly these, in this order.
expect_dispatched() {
	expected=$1
	shift
	expect "dispatched under '$*'" "$(dispatched "$@" | tr '\n' ';')" "$expected"
}

# nvme_stat KEY: a line of the emulated SSD's debugfs.
nvme_stat() {
	sed -n "s/^$1 //p" /sys/kernel/debug/steady_nvme/stats
}

# nvme_create KEY=VALUE...: a small SSD, /dev/nvme0n1, where the header names no device.
nvme_create() {
	insmod "$STEADY_MODULE_STEADY_NVME" capacity_mib=256 spare_permille=200 channels=4 rows=8 \
		"$@" || fail "insmod steady_nvme $*"
	for _ in $(seq 500); do
		[ -b /dev/nvme0n1 ] && return
		sleep 0.01
	done
	fail "/dev/nvme0n1 does not appear"
}

# le32 NUMBER: its four bytes, for printf.
le32() {
	printf '\\%03o\\%03o\\%03o\\%03o' $(($1 & 255)) $(($1 >> 8 & 255)) $(($1 >> 16 & 255)) \
		$(($1 >> 24 & 255))
}

# emmc_partition START SECTORS [START SECTORS]: a new table of primary partitions.
emmc_partition() {
	{
		head -c 446 /dev/zero
		while [ $# -gt 0 ]; do
			# shellcheck disable=SC2059 # The format is the data.
			printf "\\000\\000\\000\\000\\203\\000\\000\\000$(le32 "$1")$(le32 "$2")"
			shift 2
		done
		head -c 64 /dev/zero
	} | head -c 510 >/run/table
	printf '\125\252' >>/run/table
	dd if=/run/table of=$EMMC_NODE conv=fsync 2>/dev/null || fail "partition table"
	blockdev --rereadpt $EMMC_NODE || fail "rereadpt"
	[ -b ${EMMC_NODE}p1 ] || fail "no ${EMMC_NODE}p1"
}

CHARDISK_NODE=/dev/chardisk0
CHARIO=/sys/bus/mmc/drivers/chario
CHARIO_KNOBS=/sys/class/chardisk/chardisk0

# chario_take_regions REGIONS: the emulated card from mmcblk, such as @1M+4M@8M+1Mro
chario_take_regions() {
	echo "mmc0:0001$1" >$CHARIO/take || fail "take mmc0:0001$1"
	[ -c "$CHARDISK_NODE" ] || fail "no $CHARDISK_NODE"
}

chario_take() {
	chario_take_regions ""
}

# chario_give: and the block device is back.
chario_give() {
	echo mmc0:0001 >$CHARIO/give || fail "give"
	[ -e "$CHARDISK_NODE" ] && fail "$CHARDISK_NODE stays"
	emmc_wait
}

# chardisk OP [KEY=VALUE]...: one call; see chardisk.c
chardisk() {
	"$STEADY_TESTS_BIN/chardisk" "$CHARDISK_NODE" "$@" || fail "chardisk $*"
}

# chario_stat KEY: a counter since the card was taken.
chario_stat() {
	sed -n "s/^$1 //p" $CHARIO_KNOBS/stats
}
