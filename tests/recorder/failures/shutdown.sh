#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a file system that is shut down under a recording is waited for, and with --on-failure exit ends it; what was durable and what earlier recordings left is there afterwards
# DEVICE: test-cut
# FLAVOUR: base
. "$STEADY_FAILURES/recorder.sh"

# shut_down: EXT4_IOC_SHUTDOWN without a flush of the journal.
shut_down() {
	perl -e 'open(F, "<", $ARGV[0]) or die $!; $flags = pack("L", 2);
		ioctl(F, 0x8004587d, $flags) or die $!' /run/mnt || fail "shutdown"
}

# mount_again: what the shutdown leaves.
mount_again() {
	umount /run/mnt || fail "umount"
	mount_card
}

make_filesystem
record --total 2500KiB || fail "status $?: $(cat record.err)"
kept=$(found)

record --total 1500KiB &
sleep 0.3
shut_down
wait $!
expect "status" $? 5
grep -q "the device fails: .*Input/output error" record.err || fail "says: $(cat record.err)"
expect "received" "$(total received)" 1500
expect_accounted
durable=$(total durable)
expect_at_least "durable" "$durable" 100
mount_again
# One segment was begun over; it holds less than 512 records.
expect_at_least "found" "$(found)" $((kept - 512 + durable))

record --total 1500KiB --on-failure exit &
sleep 0.3
shut_down
wait $!
expect "status with --on-failure exit" $? 5
expect_at_most "received with --on-failure exit" "$(total received)" 700
expect_accounted
durable=$(total durable)
mount_again
expect_at_least "found with --on-failure exit" "$(found)" "$durable"
