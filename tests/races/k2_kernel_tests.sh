#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The tests of tests/kernel that $STEADY_SCRIPTS names, one after the other, on null_blk.
for script in $STEADY_SCRIPTS; do
	echo "== $script"
	sh "$STEADY_TESTS/$script.sh" || exit
	rm -rf /run/scratch
done
