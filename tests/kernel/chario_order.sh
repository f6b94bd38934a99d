#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: calls that wait are served by real-time level, then in the order of arrival
# DEVICE: test-plain
# MODULES: chario
. "$STEADY_TESTS/lib.sh"

chario_take
# 64 KiB are one command each; the first of level 3 comes before the second.
expect "order" "$("$STEADY_TESTS_BIN/chardisk_order" $CHARDISK_NODE)" "! 0 1 2 3 3b 4 5 6 7 bg1 bg2 "
# A background call of several commands goes to the end of the line after each.
echo 32 >$CHARIO_KNOBS/bg_kib
expect "order" "$("$STEADY_TESTS_BIN/chardisk_order" $CHARDISK_NODE)" "! 0 1 2 3 3b 4 5 6 7 bg1 bg2 "
expect "calls of real-time" "$(chario_stat rt_calls)" 20

# The caller's own priority, by ionice and by its scheduling policy.
before=$(chario_stat rt_calls)
ionice -c 1 -n 3 dd if=$CHARDISK_NODE of=/dev/null bs=4096 count=1 2>/dev/null
expect "with ionice" "$(chario_stat rt_calls)" $((before + 1))
chrt -f 5 dd if=$CHARDISK_NODE of=/dev/null bs=4096 count=1 2>/dev/null
expect "with SCHED_FIFO" "$(chario_stat rt_calls)" $((before + 2))
dd if=$CHARDISK_NODE of=/dev/null bs=4096 count=1 2>/dev/null
expect "without" "$(chario_stat rt_calls)" $((before + 2))

# The ioctl's priority: as ioprio_set(2) judges it.
expect "best effort" "$(chardisk read via=transfer class=2 level=7 | cut -d ' ' -f 1)" 4096
expect "class 4" "$(chardisk read via=transfer class=4 level=0)" EINVAL
expect "level 8" "$(chardisk read via=transfer class=1 level=8)" EINVAL
expect "no class, a level" "$(chardisk read via=transfer class=0 level=3)" EINVAL
chmod 666 $CHARDISK_NODE
expect "real-time for an ordinary user" "$(setpriv --reuid 65534 --regid 65534 --clear-groups \
	"$STEADY_TESTS_BIN/chardisk" $CHARDISK_NODE read via=transfer level=0)" EPERM
expect "best effort for an ordinary user" "$(setpriv --reuid 65534 --regid 65534 --clear-groups \
	"$STEADY_TESTS_BIN/chardisk" $CHARDISK_NODE read via=transfer class=2 level=0 | cut -d ' ' -f 1)" 4096
chmod 600 $CHARDISK_NODE
expect "an ordinary user" "$(setpriv --reuid 65534 --regid 65534 --clear-groups \
	"$STEADY_TESTS_BIN/chardisk" $CHARDISK_NODE read)" EACCES
