#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# `steady direct` on a card: taken, written, read, measured, returned. Called by test_direct.py in the
# guest, with $STEADY; prints one line per step, and the JSON documents as files.
set -eu
direct() {
	"$STEADY" direct "$@"
}
# NAME EXPECTED_STATUS TEXT COMMAND...: the status, and its text on standard error.
refused() {
	name=$1 expected=$2 says=$3
	shift 3
	status=0
	direct "$@" >out 2>said || status=$?
	if [ $status -ne "$expected" ] || ! grep -q "$says" said; then
		echo "$name: status $status, expected $expected and '$says': $(cat said)"
		exit 1
	fi
	echo "refused $name"
}
dd if=/dev/urandom of=data bs=1M count=3 status=none

mkfs.ext4 -q -F /dev/mmcblk0
mkdir /run/mounted
mount -o noatime /dev/mmcblk0 /run/mounted
refused mounted 2 "mmcblk0 is mounted on /run/mounted" bind /dev/mmcblk0
umount /run/mounted
direct bind mmc0:0001 --check
[ -b /dev/mmcblk0 ]

node=/dev/chardisk0
[ "$(direct bind /dev/mmcblk0 --region 1M+8M --region 16M+1Mro)" = $node ]
[ ! -e /dev/mmcblk0 ]
refused taken 2 "already bound to chario" bind mmc0:0001
direct info $node --json >info.json
direct info $node

refused consent 2 "add --destroy-data chardisk0" write $node data --offset 1M
direct write $node data --offset 1M --destroy-data chardisk0
direct read $node back --offset 1M --bytes 3M
cmp data back
regions="its regions are: 1048576+8388608, 16777216+1048576ro"
refused outside 2 "$regions" read $node back --offset 9M --bytes 4K
refused edge 2 "$regions" read $node back --offset 9433088 --bytes 8K
head -c 64K data >part
refused read-only 2 "region 16777216+1048576ro of $node is read-only" write $node part --offset 16M --destroy-data chardisk0
refused end 2 "ends at" read $node back --offset 256M --bytes 4K
cmp data back
# Without an offset: the first region.
direct read $node back
[ "$(stat -c %s back)" = 8388608 ]
cmp -n 3145728 data back
direct bench $node --count 20 --size 64K --json >bench-region.json
grep -q '"offset": 1048576' bench-region.json
direct bench $node --count 20 --op write --bytes 1M --offset 4M --destroy-data chardisk0
refused bench-outside 2 "$regions" bench $node --offset 9M --bytes 1M

head -c 1M /dev/zero >/dev/shm/memory
direct buffer /dev/shm/memory --bytes 1M --target $node --json >buffer.json
direct buffer /dev/shm/memory --bytes 1M --target $node
# A user who is not root may not open it.
[ "$(stat -c %a $node)" = 600 ]

direct unbind $node
[ -b /dev/mmcblk0 ]
[ ! -e $node ]
dd if=/dev/mmcblk0 of=block bs=1M skip=1 count=3 status=none
cmp data block

direct bind mmc0:0001
direct bench $node --count 50 --size 64K --json >bench.json
direct bench $node --count 50 --size 64K

# Two writers of one store through two nodes of the device: each put that succeeds is there.
"$STEADY" store create $node --align 64K --force >/dev/null
other=/run/other
# shellcheck disable=SC2046 # Two words.
mknod $other c $(stat -c '%Hr %Lr' $node)
(sleep 3 | "$STEADY" store put $node 100 - --size 1M) >/dev/null 2>&1 &
sleep 0.5
status=0
"$STEADY" store put $other 1 data 2>said || status=$?
if [ $status -eq 0 ] || ! grep -q "another program has this store open" said; then
	echo "two writers: status $status: $(cat said)"
	exit 1
fi
wait
"$STEADY" store put $other 1 data
"$STEADY" store get $node 1 back
cmp data back
"$STEADY" store check $node >/dev/null

direct unbind mmc0:0001
direct bench /dev/mmcblk0 --count 50 --size 64K

# steady bench: a variant through the character device, and one through the block layer.
bench() {
	"$STEADY" bench "$PROJECT/tests/direct/chardisk.toml" --device /dev/mmcblk0 \
		--destroy-data mmcblk0 "$@"
}
scheduler=$(cat /sys/block/mmcblk0/queue/scheduler)
bench --out variants.json
[ "$(cat /sys/block/mmcblk0/queue/scheduler)" = "$scheduler" ]
[ ! -e $node ]
mkfs.ext4 -q -F /dev/mmcblk0
mount -o noatime,ro /dev/mmcblk0 /run/mounted
if bench --variant chardisk 2>said; then
	echo "a mounted card was taken"
	exit 1
fi
grep -q "mmcblk0 is in use" said
umount /run/mounted
echo "all done"
