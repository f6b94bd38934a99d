#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: random transfers of all kinds keep their data, with errors, time-outs and removals
# DEVICE: test-plain
# MODULES: chario
# COMPAT: iter_segment.h
# CHARIO_TRANSFERS: of each kind of run [600], CHARIO_SEED [1]: the soak sets them.
. "$STEADY_TESTS/lib.sh"
set -e

transfers=${CHARIO_TRANSFERS:-600}
seed=${CHARIO_SEED:-1}

stress() {
	"$STEADY_TESTS_BIN/chardisk_stress" $CHARDISK_NODE seed="$seed" transfers="$transfers" "$@" ||
		fail "chardisk_stress seed=$seed transfers=$transfers $*"
}

# remove_again PID: as long as that process runs, the card comes and goes.
remove_again() {
	while kill -0 "$1" 2>/dev/null; do
		sleep 0.2
		emmc_unbind
		emmc_bind
		chario_take
	done
}

for queue in 0 8; do
	emmc_reload capacity_mib=32 cache_kib=$((queue * 32)) queue_depth=$queue
	chario_take
	stress threads=4
	echo 16 >$CHARIO_KNOBS/bg_kib
	stress threads=12
	chario_give

	emmc_reload capacity_mib=64 queue_depth=$queue \
		fault=read:error:ppm:10000,write:error:ppm:10000,any:timeout:ppm:2000,erase:error:ppm:100000
	chario_take
	stress threads=8 errors=1
	expect_at_least "injected errors" "$(emmc_stat failed)" 3
	expect_at_least "retries" "$(chario_stat retries)" 3
	chario_give
done

# Without a cache, what was written stays when the card loses its power.
emmc_reload capacity_mib=64 fault=read:error:ppm:5000,write:error:ppm:5000,any:timeout:ppm:1000
chario_take
"$STEADY_TESTS_BIN/chardisk_stress" $CHARDISK_NODE seed="$seed" transfers="$transfers" threads=8 \
	errors=1 removals=1 >/run/stress &
pid=$!
remove_again $pid
wait $pid || fail "with removals: $(cat /run/stress)"
cat /run/stress
expect_at_least "removals" "$(awk '{ print $6 }' /run/stress)" 1
chario_give
