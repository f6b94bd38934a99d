#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# `steady direct buffer` takes huge pages: they are pinned for each call, and io_uring registers them.
# Called by test_several_cpus.py; the lab kernel has no huge pages.
. "$STEADY_STOCK/lib.sh"

echo 8 >/proc/sys/vm/nr_hugepages
mkdir /run/huge
mount -t hugetlbfs hugetlbfs /run/huge
truncate -s 4M /run/huge/buffer
"$STEADY" direct buffer /run/huge/buffer --bytes 4M --target /dev/vda --json >said
"$STEADY" direct buffer /run/huge/buffer --bytes 4M --target /dev/vda
grep -q '"memory": "huge pages' said || fail "memory: $(cat said)"
[ "$(grep -c '"works": *true' said)" -eq 2 ] || fail "what works: $(cat said)"
