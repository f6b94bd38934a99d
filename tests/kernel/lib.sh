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
