#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# An SD card is taken and returned, and a partition of it made a lane and ended, again and again. Several
# threads with priorities make random transfers, two write the knobs, and one reads all that chario shows.
# Data stay right. Then the module goes with a card taken, and with a lane.
# shellcheck source=lib.sh
. "$STEADY_RACES/lib.sh"
set -e

card=$(ls /sys/bus/mmc/devices)
# The device, whatever its number: the one before keeps its own until all have closed it.
disk=$SCRATCH/disk

write_knob() {
	choose 9
	echo $((1 << chosen)) >"$CHARIO_KNOBS"/bg_kib
	choose 9
	echo $((1 << chosen)) >"$CHARIO_KNOBS"/command_kib
}

read_all() {
	cat "$CHARIO_KNOBS"/* "$CHARIO"/cards
}

wait_for() {
	for _ in $(seq 300); do
		[ -e "$1" ] && return
		sleep 0.1
	done
	fail "no $1"
}

wait_for_disk() {
	for _ in $(seq 300); do
		for node in /dev/chardisk[0-9]*; do
			[ ! -e "$node" ] || { ln -sfn "$node" "$disk" && return; }
		done
		sleep 0.1
	done
	fail "no device"
}

# under_load WHAT BEGIN END: transfers while the device comes and goes.
under_load() {
	begin=$2 end=$3
	rm -f "$SCRATCH/ended" "$SCRATCH/right"
	$begin
	(
		"$STEADY_TESTS_BIN/chardisk_stress" "$disk" seed="${STEADY_SEED:-1}" \
			transfers="$STEADY_TRANSFERS" threads=4 removals=1 && touch "$SCRATCH/right"
		touch "$SCRATCH/ended"
	) &
	beside 1 write_knob
	beside 2 write_knob
	beside 3 read_all
	rounds=0
	while [ ! -e "$SCRATCH/ended" ]; do
		choose 20
		sleep $((chosen / 10)).$((chosen % 10))
		$end
		rounds=$((rounds + 1))
		wait_for "$EMMC_NODE"
		$begin
	done
	wait
	[ -e "$SCRATCH/right" ] || fail "$1: transfers"
	echo "$1: right through $rounds rounds"
	$end
	wait_for "$EMMC_NODE"
}

take() { echo "$card" >"$CHARIO"/take && wait_for_disk; }
give() { echo "$card" >"$CHARIO"/give; }
lane() {
	wait_for "${EMMC_NODE}p1"
	echo mmcblk0p1 >"$CHARIO"/lane && wait_for_disk
}
end_lane() { echo mmcblk0p1 >"$CHARIO"/end_lane; }

under_load own take give
# 64 MiB from 1 MiB on.
emmc_partition 2048 131072
under_load lane lane end_lane

for begin in take lane; do
	$begin
	(while dd if="$disk" of=/dev/null bs=512K count=1 2>/dev/null; do :; done) &
	# While a file is open, the module stays.
	for _ in $(seq 1000); do
		! rmmod chario 2>/dev/null || break
	done
	[ ! -e /sys/module/chario ] || fail "rmmod behind $begin"
	wait
	insmod "$STEADY_MODULE_CHARIO"
	[ -b "$EMMC_NODE" ] || echo "$card" >/sys/bus/mmc/drivers/mmcblk/bind
	wait_for "$EMMC_NODE"
done
