#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# usage: trace_overhead.sh STEADY [RUNS]
#
# What `steady trace` costs the traced: fio's median and mean of 4 KiB direct reads, one at a time, from a loop
# device in memory, where an I/O takes so little that tracing shows most. Without, with, with --fine, in turns.
# Needs root and fio. docs/reference/steady-trace.md has its figures.
set -euo pipefail

steady=$1
runs=${2:-3}
scratch=$(mktemp -d)
mount -t tmpfs none "$scratch"
loop=

restore() {
	[ -z "$loop" ] || losetup --detach "$loop"
	umount "$scratch"
	rmdir "$scratch"
}
trap restore EXIT

dd if=/dev/urandom of="$scratch/disk" bs=1M count=64 status=none
loop=$(losetup --find --show "$scratch/disk")
load=(fio --name=load --filename="$loop" --rw=randread --bs=4k --direct=1 --size=64M --time_based
	--runtime=3 --output-format=json --output="$scratch/result")

tell() {
	python3 - "$1" "$scratch/result" <<-'END'
		import json, sys
		times = json.load(open(sys.argv[2]))["jobs"][0]["read"]["clat_ns"]
		p50 = times["percentile"]["50.000000"]
		print(f"{sys.argv[1]:10} p50 {p50} ns, mean {times['mean']:.0f} ns, {times['N']} reads")
	END
}

for _ in $(seq "$runs"); do
	"${load[@]}"
	tell untraced
	"$steady" trace --device "$loop" --worst 0 -- "${load[@]}" >/dev/null
	tell traced
	"$steady" trace --device "$loop" --worst 0 --fine -- "${load[@]}" >/dev/null
	tell fine
done
