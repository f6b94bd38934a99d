# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=sh
# Helpers for the tests that look for races; source as:  . "$STEADY_RACES/lib.sh"
# Commands of `beside` run during the load, and end when $SCRATCH/ended exists.
. "$STEADY_STOCK/lib.sh"

random=${STEADY_SEED:-1}

# choose BELOW: sets $chosen to the next of a sequence that $STEADY_SEED decides.
choose() {
	random=$(((random * 1103515245 + 12345) % 2147483648))
	# shellcheck disable=SC2034 # For the caller.
	chosen=$((random / 65536 % $1))
}

# `beside` NUMBER COMMAND [ARGUMENT]...: repeats it in the background until the load has ended. The files
# come and go, so a command may fail. NUMBER gives it its own random numbers.
beside() {
	random=$((${STEADY_SEED:-1} * 16 + $1))
	shift
	while [ ! -e "$SCRATCH/ended" ]; do
		"$@" >/dev/null 2>&1 || true
	done &
}
