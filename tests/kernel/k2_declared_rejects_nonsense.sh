#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a bad declaration is rejected with its reason, and changes nothing
# DEVICE: test-plain
. "$STEADY_TESTS/lib.sh"
. "$STEADY_TESTS/lib_declared.sh"
set -e

# rejects ERROR TEXT LINE: by this error, and the reason contains TEXT
rejects() {
	"$DECLARE" "line=$3" show >"$SCRATCH/out"
	expect "errors: '$3'" "$(head -n 1 "$SCRATCH/out")" "$1"
	expect "lines shown after '$3'" "$(wc -l <"$SCRATCH/out")" 2
	grep -q "^error $2" "$SCRATCH/out" || fail "'$3': $(sed -n 2p "$SCRATCH/out")"
}

good="dev=$(cat /sys/block/mmcblk0/dev) level=1 period_us=10000 jitter_us=200 think_us=100 block_us=440 exact=2 sporadic=0 owner=process"
rejects ENODEV "dev: k2 is not the scheduler" "$good"
use_k2 mmcblk0 1 0
rejects ENODATA "dev: .* has no limits" "$good"
knob mmcblk0 iosched/device_limits "$DECLARED_LIMITS"

# Each key: missing, twice, empty, without a value, and with values that no key has.
for word in $good; do
	key=${word%%=*}
	rest=$(echo "$good" | tr ' ' '\n' | grep -v "^$key=" | tr '\n' ' ')
	rejects EINVAL "$key: stated twice" "$good $word"
	rejects EINVAL "$key: bad value ''" "$rest $key="
	rejects EINVAL "$key: no value" "$rest $key"
	for bad in -1 x 99999999999999999999 1.5 0x10; do
		rejects EINVAL "$key: bad value '$bad'" "$rest $key=$bad"
	done
	case $key in
	dev | level | period_us | block_us) rejects EINVAL "$key: missing" "$rest" ;;
	esac
done
for bad in 1 1: :1 1:2:3 4096:0 1:1048576 "1:-1"; do
	rejects EINVAL "dev: bad value" "dev=$bad level=0 period_us=1000 block_us=440"
done
rejects ENODEV "dev: k2 is not" "dev=0:0 level=0 period_us=1000 block_us=440"
dev=$(cat /sys/block/mmcblk0/dev)
rejects EINVAL "level: 8" "dev=$dev level=8 period_us=1000 block_us=440"
rejects EINVAL "period_us: 0 is not above" "dev=$dev level=0 period_us=0 block_us=440"
rejects EINVAL "period_us: 500 is not above" \
	"dev=$dev level=0 period_us=500 jitter_us=200 think_us=100 block_us=440"
rejects EINVAL "sporadic: 2" "dev=$dev level=0 period_us=1000 block_us=440 sporadic=2"
rejects EINVAL "block_us: 1000001" "dev=$dev level=0 period_us=1000 block_us=1000001"
rejects ERANGE "block_us: 145 is less than .*, 146" "dev=$dev level=0 period_us=1000 block_us=145"
rejects EINVAL "color: unknown key" "$good color=red"
rejects EINVAL "dev: missing" ""
rejects EINVAL "owner: the process is in no cgroup" \
	"dev=$dev level=0 period_us=1000 block_us=440 owner=cgroup"
expect "a NUL" "$("$DECLARE" nul)" EINVAL
expect "a long line" "$("$DECLARE" "line=$good $(printf '%300s' x)")" EINVAL
for bad in "" "read 1 1" "read 0 1 write 1 1" "read 1 1 write 1" "write 1 1 read 1 1" \
	"read 1 1 write 1 1 1" "read -1 1 write 1 1" "read 5000000000 1 write 1 1"; do
	if echo "$bad" 2>/dev/null >/sys/block/mmcblk0/queue/iosched/device_limits; then
		fail "the limits '$bad' are taken"
	fi
done
expect limits "$(knob mmcblk0 iosched/device_limits)" "$DECLARED_LIMITS"
no_tasks mmcblk0

"$DECLARE" "line=$good" "line=$good" show >"$SCRATCH/out"
expect "a level declared twice" "$(head -n 2 "$SCRATCH/out" | tr '\n' ' ')" "ok EBUSY "
grep -q " level=1 .* exact=2 .* owner=process .* state=armed " "$SCRATCH/out" ||
	fail "$(cat "$SCRATCH/out")"
no_tasks mmcblk0
knob mmcblk0 scheduler none
