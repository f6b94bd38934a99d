#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# All devices are suspended and resumed under transfers to an SD card, whole and as a lane: the card
# is initialised again, and the data are right. (What a suspend does to devices, without the
# platform's sleep.) Of all that reaches the host virtio-9p does not come back: so everything runs
# from memory, and the guest is powered off here.
. "$STEADY_TESTS/lib.sh"
set -e

LOADER=/lib64/ld-linux-x86-64.so.2

copy_to_memory() { # PROGRAM...: with their libraries
	for program in "$@"; do
		for file in "$program" $("$LOADER" --list "$program" | grep -o '/[^ ]*'); do
			mkdir -p "/run/memory${file%/*}"
			cp "$file" "/run/memory$file"
		done
	done
}

# 64 MiB from 1 MiB on.
emmc_partition 2048 131072
copy_to_memory /bin/sh /bin/cat /bin/rm /bin/touch /bin/sleep /bin/seq \
	"$STEADY_TESTS_BIN/chardisk_stress"
for place in proc sys dev; do
	mkdir "/run/memory/$place"
	mount --rbind "/$place" "/run/memory/$place"
done
cat >/run/memory/test.sh <<END
stress=$STEADY_TESTS_BIN/chardisk_stress
node=$CHARDISK_NODE
chario=$CHARIO
card=$(ls /sys/bus/mmc/devices)
END
cat >>/run/memory/test.sh <<'END'
finish() { # STATUS
	echo "steady-lab: exit status $1" >/dev/kmsg
	echo o >/proc/sysrq-trigger
	sleep 100
}
fail() {
	echo "FAIL: $*"
	finish 1
}
# As many suspends on a fast machine as on a slow one; the transfers last as long.
sleeps_under_transfers() { # WHAT
	rm -f /enough
	(
		seed=0
		until [ -e /enough ]; do
			seed=$((seed + 1))
			$stress $node seed=$seed transfers=50 threads=4 || exit
		done
	) &
	for _ in 1 2 3 4 5 6; do
		sleep 1
		echo mem >/sys/power/state || fail "$1: suspend"
	done
	touch /enough
	wait $! || fail "$1: transfers"
	echo "$1: right after 6 suspends"
}

echo devices >/sys/power/pm_test
echo 1 >/sys/module/suspend/parameters/pm_test_delay
echo mmcblk0p1 >$chario/lane || fail "lane"
sleeps_under_transfers lane
echo mmcblk0p1 >$chario/end_lane || fail "end the lane"
echo "$card" >$chario/take || fail "take $card"
sleeps_under_transfers own
finish 0
END
exec chroot /run/memory /bin/sh /test.sh
