#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a card that goes away under load gives an error to every caller, and nothing stays
# DEVICE: test-plain
# MODULES: chario
# COMPAT: claim_disk.h
. "$STEADY_TESTS/lib.sh"

for queue in 0 8; do
	emmc_reload capacity_mib=64 queue_depth=$queue
	for way in pull give rebind; do
		chario_take
		pids=
		for job in 1 2 3 4; do
			class=$((job % 2 + 1))
			while ionice -c $class dd if=$CHARDISK_NODE of=/dev/null bs=512K 2>"/run/dd$job"; do :; done &
			pids="$pids $!"
		done
		sleep 0.0$((queue + 2))3
		case $way in
		pull) emmc_unbind ;;
		give) echo mmc0:0001 >$CHARIO/give || fail "give" ;;
		rebind) echo mmc0:0001 >$CHARIO/unbind || fail "unbind" ;;
		esac
		for pid in $pids; do
			wait "$pid"
		done
		grep -lE "No such device|No such file" /run/dd? | wc -l | grep -q 4 ||
			fail "$way: $(cat /run/dd?)"
		[ -e "$CHARDISK_NODE" ] && fail "$way: the node stays"
		case $way in
		pull) emmc_bind ;;
		rebind) echo mmc0:0001 >/sys/bus/mmc/drivers/mmcblk/bind || fail "bind" ;;
		esac
		emmc_wait
		dd if=/dev/mmcblk0 of=/dev/null bs=1M count=1 iflag=direct 2>/dev/null || fail "$way: mmcblk"
	done
done

# A process is killed in a long call, and the module can go.
chario_take
dd if=$CHARDISK_NODE of=/dev/null bs=64M iflag=fullblock 2>/dev/null &
sleep 0.02
kill -9 $!
wait $!
rmmod chario || fail "rmmod with the card taken"
[ -e "$CHARDISK_NODE" ] && fail "node without the module"
insmod "$STEADY_MODULE_CHARIO" || fail "insmod"
