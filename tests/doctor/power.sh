#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs in a guest under QEMU with an NVMe drive, which Debian's kernel lets sleep by itself and whose
# writes it throttles: both are found, gone after the fix, and set by `steady apply`.
set -eu
disk=nvme0n1
drive=/sys/class/nvme/nvme0
throttle=/sys/block/$disk/queue/wbt_lat_usec
rule=/etc/udev/rules.d/90-steadyio-$disk.rules
ask() { # $1: a name for the record
	"$STEADY" doctor /dev/$disk --json >"$1.json" || true
}
values() {
	cat $drive/power/pm_qos_latency_tolerance_us $throttle
}
before=$(values)
echo k2 >/sys/block/$disk/queue/scheduler
ask begin
"$STEADY" doctor /dev/$disk | sed -n 's/^    \([^(].*\)/\1/p' >/tmp/fix
cat /tmp/fix
sh -e /tmp/fix
ask fixed
echo 100000 >$drive/power/pm_qos_latency_tolerance_us
echo none >/sys/block/$disk/queue/scheduler
echo -1 >$throttle
[ "$(values)" = "$before" ]

# A profile of this drive, and of one that is smaller.
sed "s/^disk = .*/disk = \"$disk\"/; s/^model = .*/model = \"$(sed 's/ *$//' $drive/model)\"/; \
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
grep -q 'SUBSYSTEM=="nvme", ATTR{serial}=="lab0", ATTR{power/pm_qos_latency_tolerance_us}="0"' $rule
grep -q 'ATTRS{serial}=="lab0"' $rule
"$STEADY" apply --remove --disk $disk --yes
values
[ "$(values)" = "$before" ]
