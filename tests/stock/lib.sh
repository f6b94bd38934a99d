# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=sh
# Helpers for the tests on stock kernels; source as:  . "$STEADY_STOCK/lib.sh"
. "$STEADY_TESTS/lib.sh"

REGION_KIB=2048
JOBS=4

# zero DISK: what a stream needs before it.
zero() {
	blkdiscard --zeroout --length $((JOBS * REGION_KIB * 1024)) "$1"
}

# stream DISK [KEY=VALUE]...: one real-time and three background processes that check their data.
stream() {
	disk=$1
	shift
	"$STEADY_TESTS_BIN/io_stream" "$disk" jobs=$JOBS rt_jobs=1 region_kib=$REGION_KIB \
		block_bytes="$(blockdev --getss "$disk")" largest_kib=256 hint_percent=20 sync_percent=5 "$@"
}

# k2_while_streaming DISK COMMAND [ARGUMENT]...: repeat a command with the disk's name until a stream
# on it has ended; fails if its data is wrong, or if the command fails.
k2_while_streaming() {
	disk=$1
	shift
	rm -f "$SCRATCH/ended"
	zero "$disk"
	(
		stream "$disk" ios="$STEADY_IOS" && echo right >"$SCRATCH/data"
		touch "$SCRATCH/ended"
	) &
	rm -f "$SCRATCH/data"
	rounds=0
	while [ ! -e "$SCRATCH/ended" ]; do
		"$@" "${disk#/dev/}" "$rounds"
		rounds=$((rounds + 1))
	done
	wait $!
	[ -e "$SCRATCH/data" ] || fail "$disk: the stream"
}
