#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Parts of an NVMe namespace by its character device: no call reaches bytes outside, also after a resize,
# and nobody writes to a part that is in use. Called by test_nvme.py in the guest.
# shellcheck source=../kernel/lib.sh
. "$STEADY_TESTS/lib.sh"
set -e

disk=/dev/nvme0n1
node=/dev/ng0n1
part=$node@p2
direct() {
	"$STEADY" direct "$@"
}
contents() {
	dd if=$disk bs=1M count=18 iflag=direct status=none | cksum
}
# NAME TEXT COMMAND...: fails with this text.
refused() {
	name=$1 says=$2
	shift 2
	status=0
	"$@" >out 2>said || status=$?
	if [ $status -eq 0 ] || ! grep -qFe "$says" said; then
		fail "$name: status $status, expected '$says': $(cat said)"
	fi
	echo "refused: $(cat said)"
}
# Whether MiBs still consist of a letter.
filled() { # MIB LETTER COUNT
	head -c $(($3 << 20)) /dev/zero | tr '\0' "$2" >expected
	dd if=$disk of=found bs=1M skip="$1" count="$3" iflag=direct status=none
	cmp expected found || fail "$3 MiB from MiB $1 on are not $2"
}
fill() { # MIB LETTER COUNT
	head -c $(($3 << 20)) /dev/zero | tr '\0' "$2" >content
	dd if=content of=$disk bs=1M seek="$1" oflag=direct status=none
}
fill 0 a 1
fill 1 b 4
fill 5 c 8
fill 13 d 4
addpart $disk 1 2048 8192
addpart $disk 2 10240 16384

# Offset 0 is the start of the part, and the block device sees what is written, cached or not.
direct info $part
[ "$(blockdev --getsize64 ${disk}p2)" = $((8 << 20)) ]
exec 4<${disk}p2
cat <&4 >/dev/null
head -c 3M /dev/urandom >data
direct write $part data --offset 1M
cmp -n $((3 << 20)) -i 0:$((1 << 20)) data ${disk}p2 || fail "old contents in the page cache"
exec 4<&-
direct read $part back --offset 1M --bytes 3M
cmp data back
direct read $part back
[ "$(stat -c %s back)" = $((8 << 20)) ]
fill 5 c 8
direct bench $part --count 20 --size 64K --op write
filled 1 b 4
filled 13 d 4
fill 5 c 8

before=$(contents)
outside="outside the region ng0n1@p2, which has 8388608 bytes"
refused end "--offset 8388608, 4096 bytes: $outside" direct read $part back --offset 8M --bytes 4K
refused over "--offset 6291456, 3145728 bytes: $outside" direct write $part data --offset 6M
refused no-partition "has no block device /dev/nvme0n1p7" direct read $node@p7 back
refused form "what follows @ must be a partition" direct read $node@2 back
refused block-device "@ names a part of an NVMe namespace" direct read $disk@p1 back
refused range-end "the namespace has only" direct read $node@127M+2M back
refused range-blocks "must be whole blocks of 512 bytes" direct read $node@100+1M back
direct read $node@5M+1M back
head -c 1M content | cmp - back
refused read-only "ng0n1@5242880+1048576ro is read-only" \
	direct bench $node@5M+1Mro --op write --count 1 --destroy-data nvme0n1
[ "$before" = "$(contents)" ] || fail "a rejected call changed the namespace"

# A partition that shrinks or becomes read-only while it is open.
mkfifo slow
while_open() { # COMMAND...: during a copy that waits after its first 4 MiB
	direct read $part - 2>said >slow &
	reader=$!
	exec 3<slow
	head -c 1M <&3 >/dev/null
	"$@"
	cat <&3 >/dev/null
	exec 3<&-
	wait $reader && fail "$*: the read ended well"
	return 0
}
while_open resizepart $disk 2 8192
grep -qF "offset 4194304, 4194304 bytes: outside the region ng0n1@p2, which has 4194304 bytes" said ||
	fail "resized: $(cat said)"
resizepart $disk 2 16384
(sleep 0.02 && blockdev --setro ${disk}p2) &
status=0
direct bench $part --op write --count 1000000 --bytes 64K 2>said || status=$?
wait
grep -q "ng0n1@p2 is read-only" said || fail "read-only: $status $(cat said)"
blockdev --setrw ${disk}p2
filled 13 d 4
fill 5 c 8

# A part in use.
mkfs.ext4 -q -F ${disk}p1
mkdir -p /run/mounted
mount ${disk}p1 /run/mounted
before=$(contents)
refused mounted "mounted on /run/mounted" direct write $node@p1 data --destroy-data nvme0n1p1
refused mounted-whole "nvme0n1 is in use" direct write $node data --destroy-data nvme0n1
refused mounted-range "nvme0n1 is in use" direct write $node@8M+4M data --destroy-data nvme0n1
direct bench $part --op read --count 1 >/dev/null
[ "$before" = "$(contents)" ] || fail "changed while mounted"
umount /run/mounted
losetup /dev/loop0 ${disk}p1
mount /dev/loop0 /run/mounted
refused loop "below loop0" direct write $node@p1 data --destroy-data nvme0n1p1
refused loop-whole "below loop0" direct write $node data --destroy-data nvme0n1
umount /run/mounted
losetup -d /dev/loop0
direct bench $part --op write --count 1000000 --bytes 64K 2>/dev/null &
writer=$!
sleep 0.02
refused_alive() {
	status=0
	"$@" 2>said || status=$?
	if [ $status -ne 2 ] || ! grep -q "in use" said; then
		fail "$*: $status $(cat said)"
	fi
}
refused_alive direct write $part data
refused_alive direct write $node@0+4M data --destroy-data nvme0n1
refused_alive direct bench $node --op write --destroy-data nvme0n1
delpart $disk 2 2>/dev/null && fail "deleted under a writer"
mount ${disk}p2 /run/mounted 2>/dev/null && fail "mounted under a writer"
kill -TERM $writer
wait $writer || true
filled 13 d 4
e2fsck -fn ${disk}p1 >/dev/null || fail "the file system next to it"
echo "all done"
