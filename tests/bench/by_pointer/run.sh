#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The trial behind "Limits" in docs/reference/steady-trace.md. It makes 6,000 reads with 16
# outstanding, first of all sectors of a loop device, then of eight only. `steady trace` matches them by
# their sectors, and a BPF program by the addresses of bios. By hand, as root, on a kernel with BTF; needs
# Debian's clang, bpftool and libbpf-dev. Work folder: build/by_pointer.
set -eu
cd "$(dirname "$0")/../../.."
here=tests/bench/by_pointer work=build/by_pointer
mkdir -p $work
truncate -s 256M $work/image
node=$(losetup --find --show $work/image)
trap 'losetup --detach "$node"' EXIT

major=0x$(stat -c %t "$node") minor=0x$(stat -c %T "$node")
bpftool btf dump file /sys/kernel/btf/vmlinux format c >$work/vmlinux.h
clang -O2 -g -target bpf -D__TARGET_ARCH_x86 "-DDISK=$(((major << 20) | minor))" \
	-I$work -c $here/by_pointer.bpf.c -o $work/by_pointer.bpf.o
bpftool gen skeleton $work/by_pointer.bpf.o name by_pointer >$work/by_pointer.skel.h
cc -I$work $here/by_pointer.c -o $work/by_pointer -lbpf -lelf -lz

for size in 256M 32k; do
	load="fio --name=load --filename=$node --direct=1 --rw=randread --bs=4k --ioengine=libaio
		--iodepth=4 --numjobs=4 --thread --size=$size --io_size=6M --number_ios=1500
		--output=/dev/null"
	load=$(echo "$load" | tr -s '\n\t' ' ')
	echo "reads of $size"
	# It exits with 3 where requests are ambiguous.
	# shellcheck disable=SC2086 # words
	build/bin/steady trace --device "$node" --json -- $load >$work/record.json || [ $? -eq 3 ]
	python3 -c 'import json; account = json.load(open("build/by_pointer/record.json"))["account"]
print("tracefs: {matched} requests matched, {unmatched} ambiguous".format(**account))'
	$work/by_pointer "$load"
done
