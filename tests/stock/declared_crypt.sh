#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# A declared task through dm-crypt, which submits reads and writes from threads of the kernel: all count
# as the owner's, and none is blocked for longer by k2's own fault. Of times nothing is asserted.
. "$STEADY_STOCK/lib.sh"
# shellcheck source=../kernel/lib_declared.sh
. "$STEADY_TESTS/lib_declared.sh"
set -e

JOBS_MIN=50

# declared_jobs OP: reads or writes of 16 KiB every 20 ms, with the counts in $SCRATCH/OP.
declared_jobs() {
	"$DECLARE" "line=$(task nullb0 0 20000)" level=0 "$1=/dev/dm-0,16,$JOBS_MIN,20000" \
		show >"$SCRATCH/$1"
	cat "$SCRATCH/$1"
	expect_at_least "jobs through dm-crypt: $1" "$(value jobs <"$SCRATCH/$1")" "$JOBS_MIN"
	for count in foreign over_k2 over_bypass; do
		expect "$count of $1" "$(value $count <"$SCRATCH/$1")" 0
	done
}

# The kernel asks for the modules of the cipher itself.
cat >"$SCRATCH/modprobe" <<-END
	#!/bin/sh
	exec modprobe -d /run/steadyio/kernel "\$@"
END
chmod +x "$SCRATCH/modprobe"
echo "$SCRATCH/modprobe" >/proc/sys/kernel/modprobe
"$SCRATCH/modprobe" dm_crypt

null_blk_create nullb0 completion_nsec=100000
use_declared nullb0
key=$(printf '%064d' 1)
dmsetup create --noudevsync crypt \
	--table "0 $(cat /sys/block/nullb0/size) crypt aes-xts-plain64 $key 0 /dev/nullb0 0"
begin_background nullb0
declared_jobs read
# dm-crypt of 6.1 drops the priority of writes.
[ "$STEADY_KERNEL" = 6.1 ] || declared_jobs write
end_background
no_tasks nullb0
dmsetup remove --noudevsync crypt
k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
