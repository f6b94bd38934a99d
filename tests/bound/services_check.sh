#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# A service of a running system (services.sh): udev and systemd act on what `steady apply` writes, and
# no longer once it is removed.
queue=/sys/block/vda/queue

fail() {
	echo "$*"
	exit 1
}

event() {
	udevadm trigger --action="$1" --settle /sys/block/vda || fail "udevadm: status $?"
}

is_set() {
	grep -q "\[k2\]" $queue/scheduler && [ "$(cat $queue/iosched/rt_block_us)" = 1000 ] &&
		grep -q "^read 393700 " $queue/iosched/device_limits &&
		[ "$(cat $queue/max_sectors_kb)" = 512 ] && [ "$(cat $queue/nr_requests)" = 64 ]
}

priority() {
	systemctl restart logger.service || fail "logger.service: status $?"
	cat /priority
}

udevadm settle || fail "udev does not settle"
before=$(priority)
echo mq-deadline >$queue/scheduler
steady apply /card.toml /tasks.toml --disk vda --yes || fail "apply: status $?"
is_set || fail "apply has not set the disk"

# The log task has level 1.
[ "$(priority)" = "realtime: prio 1" ] || fail "the service's priority: $(cat /priority)"
# Its process has declared it, and only as long as it runs.
grep -q "^dev=.* level=1 period_us=20000 .* state=armed " /declared || fail "declared: $(cat /declared)"
[ -z "$(cat $queue/iosched/rt_declared)" ] || fail "left: $(cat $queue/iosched/rt_declared)"

# What a disk has when it comes back.
for action in add change; do
	echo none >$queue/scheduler
	echo 256 >$queue/max_sectors_kb
	event $action
	is_set || fail "$action: $(cat $queue/scheduler $queue/max_sectors_kb)"
done

steady apply --remove --disk vda --yes || fail "removing: status $?"
event change
grep -q "\[mq-deadline\]" $queue/scheduler || fail "removed: $(cat $queue/scheduler)"
[ "$(priority)" = "$before" ] || fail "removed: the service's priority: $(cat /priority)"
