# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=sh
# Helpers for the tests of `steady record` on failing devices; source as:
#     . "$STEADY_FAILURES/recorder.sh"
# shellcheck source=../../kernel/lib.sh
. "$STEADY_TESTS/lib.sh"

RECORDING=/run/mnt/recording

make_filesystem() {
	mkfs.ext4 -q -J size=4 -E lazy_itable_init=0,lazy_journal_init=0 "$STEADY_DEVICE" || fail "mkfs"
	mkdir -p /run/mnt
	mount_card
}

mount_card() {
	mount -t ext4 -o noatime "$STEADY_DEVICE" /run/mnt || fail "mount"
}

# restart_card: power off and on again.
restart_card() {
	umount /run/mnt || fail "umount"
	emmc_unbind
	emmc_bind
	mount_card
}

# A record of 1 KiB per millisecond into six segments of 512 KiB.
SETTINGS="--period 1ms --size 1KiB --segments 6 --segment-size 512KiB --unit 16KiB --loss-window 40ms"

# record OPTION...: by these settings and options; the result is in result.json, the account over
# time in account.
record() {
	rm -f result.json
	# shellcheck disable=SC2086
	timeout 600 "$STEADY" record --dir "$RECORDING" --quiet $SETTINGS --out result.json \
		--account-log account "$@" >record.out 2>record.err
}

# total NAME: records of the whole recording that were received, durable, and so on. The total is
# the last account in the result.
total() {
	sed -n "s/.*\"$1\":{\"records\":\([0-9]*\).*/\1/p" result.json
}

lost() {
	echo $(($(total lost_ring_full) + $(total lost_in_writing)))
}

# pool_meter NAME: a number of the writer's own.
pool_meter() {
	sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p" result.json
}

# expect_accounted: every record is written or lost, and only written ones are reported durable.
expect_accounted() {
	expect "written and lost together" $(($(total written) + $(lost))) "$(total received)"
	expect_at_most "durable" "$(total durable)" "$(total written)"
}

# expect_kept WHEN: after a restart of the card all durable records are there.
expect_kept() {
	expect_at_most "durable $1" "$(total durable)" 800
	expect_accounted
	durable=$(total durable)
	restart_card
	expect_at_least "found $1" "$(found)" "$durable"
}

# found: records in the recording's files after recovery.
found() {
	"$STEADY" recover --verify "$RECORDING" >recovered || fail "recover: $(cat recovered)"
	awk '$4 ~ /^[0-9]+$/ { sum += $4 } END { print sum + 0 }' recovered
}
