#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# `steady direct` on a namespace's own character device: what is written there is on the block device,
# a namespace in use is rejected, and a user without the right learns why. No times are asserted.
. "$STEADY_STOCK/lib.sh"
set -e

disk=${STEADY_DISKS%% *}
name=${disk#/dev/}
node=/dev/ng${name#nvme}
# NAME TEXT COMMAND...: status 2, and this text.
refused() {
	name_of=$1 says=$2
	shift 2
	status=0
	"$@" >out 2>said || status=$?
	if [ $status -ne 2 ] || ! grep -q "$says" said; then
		fail "$name_of: status $status, expected '$says': $(cat said)"
	fi
}
blkdiscard --zeroout "$disk"
bytes=$(blockdev --getsize64 "$disk")
"$STEADY" direct info "$node" --json >info.json
grep -q "\"bytes\": $bytes" info.json || fail "size: $(cat info.json)"
"$STEADY" direct info "$node"

# More commands than are in flight, and no multiple of one.
head -c $(((20 << 20) + 4096)) /dev/urandom >data
"$STEADY" direct write "$node" data --offset 1M
dd if="$disk" of=block bs=4096 skip=256 count=$((20 * 256 + 1)) iflag=direct status=none
cmp data block || fail "not what was written"
"$STEADY" direct read "$node" back --offset 1M --bytes $(((20 << 20) + 4096))
cmp data back || fail "not what is read"
"$STEADY" direct read "$node" all
[ "$(stat -c %s all)" -eq "$bytes" ] || fail "the end"
refused end "outside the region ng${name#nvme}, which has $bytes bytes" "$STEADY" direct read "$node" back --offset "$bytes" --bytes 4K
refused unaligned "must be a multiple" "$STEADY" direct read "$node" back --offset 100

for op in read write; do
	"$STEADY" direct bench "$node" --op $op --count 40 --size 1M --offset 1M --json >$op.json
	[ "$(grep -c '"count": 40' $op.json)" -eq 2 ] || fail "bench: $(cat $op.json)"
done

mkfs.ext4 -q -F "$disk"
refused consent "add --destroy-data $name" "$STEADY" direct write "$node" data
mkdir -p /run/mounted
mount "$disk" /run/mounted
refused mounted "mounted on /run/mounted" \
	"$STEADY" direct write "$node" data --destroy-data "$name"
umount /run/mounted

# Another user: CAP_SYS_ADMIN before 6.2, then the permissions of the node.
chmod 666 "$node"
set -- setpriv --reuid 65534 --regid 65534 --clear-groups "$STEADY" direct info "$node"
case $STEADY_KERNEL in
6.1) refused user "need CAP_SYS_ADMIN before Linux 6.2" "$@" ;;
*) "$@" ;;
esac
