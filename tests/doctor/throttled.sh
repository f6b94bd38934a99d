#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs in a guest under QEMU with an NVMe drive, whose writes Debian's kernel throttles: that is found,
# gone after the fix, and set by `steady apply`, which takes the profile of an SSD, but not of another.
set -eu
disk=nvme0n1
throttle=/sys/block/$disk/queue/wbt_lat_usec
rule=/etc/udev/rules.d/90-steadyio-$disk.rules
ask() { # $1: a name for the record
	"$STEADY" doctor /dev/$disk --json >"$1.json" || true
}
before=$(cat $throttle)
echo k2 >/sys/block/$disk/queue/scheduler
ask begin
"$STEADY" doctor /dev/$disk | sed -n 's/^    \([^(].*\)/\1/p' >/tmp/fix
sh -e /tmp/fix
ask fixed
echo none >/sys/block/$disk/queue/scheduler
echo -1 >$throttle
[ "$(cat $throttle)" = "$before" ]

# A profile of this drive, and of one that is smaller.
sed "s/^disk = .*/disk = \"$disk\"/; s/^model = .*/model = \"$(sed 's/ *$//' /sys/block/$disk/device/model)\"/; \
	s/^size_bytes = .*/size_bytes = $(($(cat /sys/block/$disk/size) * 512))/; /^serial_sha256/d; \
	s/^max_sectors_kb = .*/max_sectors_kb = 64/" \
	"$STEADY_TESTS/../../device/probe/tests/profile.toml" >/tmp/profile.toml
sed 's/^size_bytes = .*/size_bytes = 4096/' /tmp/profile.toml >/tmp/other.toml
mkdir -p /run/etc
mount --bind /run/etc /etc
apply() {
	"$STEADY" apply "$1" --rt-block-us 2000 --disk $disk --yes
}
if apply /tmp/other.toml 2>said; then exit 1; fi
grep -q "must be the same" said
apply /tmp/profile.toml
ask applied
grep -q 'ATTRS{serial}=="lab0"' $rule
"$STEADY" apply --remove --disk $disk --yes
[ "$(cat $throttle)" = "$before" ]
