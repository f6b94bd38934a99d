#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a declared task waits no longer than block_us for background, from its first request on, with a period of 15 s, as a pool of 100 threads and from workers of io_uring
# DEVICE: test-plain
. "$STEADY_TESTS/lib.sh"
. "$STEADY_TESTS/lib_declared.sh"
set -e

use_declared mmcblk0
alone_ns=$(max_ns_of "$DECLARE" level=0 read=/dev/mmcblk0,64,3,20000)
limit_ns=$((alone_ns + DECLARED_BLOCK_US * 1000))
begin_background mmcblk0
unguarded_ns=$(max_ns_of "$DECLARE" level=0 read=/dev/mmcblk0,64,20,10300)
first_ns=$(max_ns_of "$DECLARE" "line=$(task mmcblk0 0 20000)" level=0 \
	read=/dev/mmcblk0,64,1,20300)
rare_ns=$(max_ns_of "$DECLARE" "line=$(task mmcblk0 0 15000000)" level=0 \
	read=/dev/mmcblk0,64,2,15000000)
pool_ns=$(max_ns_of "$DECLARE" "line=$(task mmcblk0 0 10300)" level=0 threads=100 \
	read=/dev/mmcblk0,64,200,10300)
"$DECLARE" "line=$(task mmcblk0 0 10300)" level=0 uring=/dev/mmcblk0,64,50,10300 show \
	>"$SCRATCH/uring"
uring_ns=$(sed -n 's/^max_ns //p' "$SCRATCH/uring")
end_background
echo "alone $alone_ns, unguarded $unguarded_ns, first $first_ns, rare $rare_ns, pool $pool_ns," \
	"io_uring $uring_ns"
expect "jobs and foreign requests from io_uring" \
	"$(value jobs <"$SCRATCH/uring") $(value foreign <"$SCRATCH/uring")" "50 0"
expect_at_most "workers of io_uring" "$uring_ns" "$limit_ns"
expect_at_least "without a declaration" "$unguarded_ns" $((2 * limit_ns))
expect_at_most "the first request" "$first_ns" "$limit_ns"
expect_at_most "one request in 15 s" "$rare_ns" "$limit_ns"
expect_at_most "100 threads in turn" "$pool_ns" "$limit_ns"
no_tasks mmcblk0
k2_expect_settled mmcblk0
knob mmcblk0 scheduler none
