#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs in a guest with an eMMC: `steady apply` sets the disk up and keeps it so, --remove takes it back,
# and what cannot be kept is not set.
project=/run/steadyio/project
queue=/sys/block/mmcblk0/queue
rule=/etc/udev/rules.d/90-steadyio-mmcblk0.rules

fail() {
	echo "$*"
	exit 1
}

apply() {
	$project/build/bin/steady apply "$project/experiments/devices/foresee-ncemad9d-usb.toml" \
		"$project/docs/examples/robot.toml" --disk mmcblk0 "$@"
}

values() {
	(cd $queue && cat scheduler max_sectors_kb nr_requests)
}

mount -t tmpfs tmpfs /etc
echo mq-deadline >$queue/scheduler
echo 256 >$queue/max_sectors_kb
before=$(values)

apply >/dev/null || fail "showing: status $?"
[ "$(values)" = "$before" ] || fail "showing has set something"

mount -o remount,ro /etc
apply --yes && fail "a file that cannot be written is no error"
[ "$(values)" = "$before" ] || fail "what cannot be kept was set: $(values)"
mount -o remount,rw /etc

apply --yes || fail "applying: status $?"
grep -q "\[k2\]" $queue/scheduler || fail "k2 is not set"
[ "$(cat $queue/iosched/rt_block_us)" = 1000 ] || fail "rt_block_us is not set"
[ "$(cat $queue/iosched/device_limits)" = "read 393700 11100 write 684000 15200" ] ||
	fail "device_limits: $(cat $queue/iosched/device_limits)"
[ "$(cat $queue/max_sectors_kb)" = 512 ] || fail "max_sectors_kb is not set"
grep -q 'ATTR{queue/scheduler}="k2"' $rule || fail "no rule"
# The message has k2's reason for rejecting a declaration, and the program does not run.
rejected() {
	$project/build/bin/steady with --device /dev/mmcblk0 --declare "$1" -- touch /tmp/ran 2>/tmp/said
	status=$?
	[ $status -eq 125 ] || fail "$1: status $status"
	grep -q "/dev/k2: $2" /tmp/said || fail "$1: $(cat /tmp/said)"
	[ ! -e /tmp/ran ] || fail "$1: the program has run"
}
rejected level=0,period_us=1000,block_us=1 "block_us: 1 is less than"
rejected level=0,period_us=1,think_us=1,block_us=1000 "period_us: 1 is not above"
# Applied again, what was before stays so.
apply --yes || fail "applying again: status $?"
$project/build/bin/steady apply --remove --disk mmcblk0 --yes || fail "removing: status $?"
[ ! -e $rule ] || fail "the rule is left"
[ "$(values)" = "$before" ] || fail "not as before: $(values), was $before"

# Look-ahead knows the card, before it has seen a request.
known() {
	grep -c "reserve:0 " $queue/iosched/device_model
}
echo k2 >$queue/scheduler
[ "$(known)" = 2 ] || fail "something is known of the card: $(cat $queue/iosched/device_model)"
$project/build/bin/steady apply "$project/experiments/devices/foresee-ncemad9d-usb.toml" \
	--rt-block-us 2000 --disk mmcblk0 --yes || fail "look-ahead: status $?"
cat $queue/iosched/device_model
[ "$(known)" = 0 ] || fail "the card is not known: $(cat $queue/iosched/device_model)"
[ "$(cat $queue/iosched/rt_block_us)" = 2000 ] || fail "rt_block_us is not set"
