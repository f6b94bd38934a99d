#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs scripts one after the other, called by shared_boot.py with four arguments for each: a folder to
# make and run it in, its path, its disk's node or "", and the command steady. The file "status" in its
# folder has how it ended. The last script's status is this one's: it may power the guest off.

# A disk that an earlier script gave back to its driver comes in its own time.
wait_for_disk() {
	until [ -z "$1" ] || [ -b "$1" ]; do sleep 0.1; done
}

work=$PWD
while [ $# -gt 0 ]; do
	folder=$work/$1 script=$2
	export STEADY_DISKS="$3" STEADY="$4"
	shift 4
	echo "== $(cut -d' ' -f1 /proc/uptime) s: $script $STEADY_DISKS"
	echo "steady-lab: ${script##*/} $STEADY_DISKS" >/dev/kmsg
	wait_for_disk "$STEADY_DISKS"
	rm -rf /run/scratch "$folder"
	mkdir "$folder"
	cd "$folder" || exit
	[ $# -gt 0 ] || exec sh "$script"
	sh "$script"
	status=$?
	echo $status >"$folder/status"
	echo "exit status $status"
done
