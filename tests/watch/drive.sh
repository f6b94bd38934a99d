#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The wear of an NVMe drive, as root and as nobody; called by test_guest.py in the guest, with $STEADY.
set -eu
look() {
	"$@" "$STEADY" watch nvme0n1 --json --interval 100ms --count 5
}
look env >root.json
look setpriv --reuid 65534 --clear-groups >nobody.json 2>said
