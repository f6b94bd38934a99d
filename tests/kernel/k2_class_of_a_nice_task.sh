#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: no nice value makes a task real-time; batch, deadline and real-time policies map as documented
# DEVICE: none
# MODULES: null_blk nr_devices=0
. "$STEADY_TESTS/lib.sh"
set -e

null_blk_create nullb0 completion_nsec=10000
use_k2 nullb0 1 0
read_as() {
	"$@" dd if=/dev/nullb0 of=/dev/null bs=4k count=1 iflag=direct status=none
}
for nice in -20 -10 0 10 19; do
	expect_dispatched "R 0 4096 9;" read_as nice -n $nice
done
expect_dispatched "R 0 4096 9;" read_as chrt -b 0
expect_dispatched "R 0 4096 4;" read_as chrt -f 1
expect_dispatched "R 0 4096 4;" read_as chrt -r 99
expect_dispatched "R 0 4096 4;" read_as chrt -d -T 1000000 -P 10000000 0
# Under a real-time policy the nice value still gives the level: (nice + 20) / 5.
expect_dispatched "R 0 4096 0;" read_as nice -n -20 chrt -f 1
expect_dispatched "R 0 4096 7;" read_as nice -n 19 chrt -f 1

k2_expect_settled nullb0
knob nullb0 scheduler none
null_blk_remove nullb0
