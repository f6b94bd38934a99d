# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=sh
# The load of the tests of drivers' events; source after tests/kernel/lib.sh.

# trace_load DISK: four threads, begun apart so that no two I/Os are alike, then a flush and discards.
trace_load() {
	cat >"$SCRATCH/load" <<-LOAD
		set -e
		for thread in 0 1 2 3; do
			sleep 0.00003
			dd if=$1 of=/dev/null bs=4k skip=\$((thread * 1000)) count=50 iflag=direct status=none &
		done
		wait
		for thread in 0 1 2 3; do
			sleep 0.00003
			dd if=/dev/zero of=$1 bs=64k seek=\$((thread * 100)) count=50 oflag=direct status=none &
		done
		wait
		dd if=/dev/zero of=$1 bs=4k count=1 oflag=direct conv=fsync status=none
		blkdiscard --force --offset 1048576 --length 8388608 $1
	LOAD
	"$STEADY" trace --device "$1" --keep kept --json -- sh "$SCRATCH/load" >record.json
}
