#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# A store in a partition of an NVMe namespace by its character device: the block layer reads the same, and
# programs that come in three ways lose no put that succeeded. Called by test_on_nvme.py in the guest.
# shellcheck source=../kernel/lib.sh
. "$STEADY_TESTS/lib.sh"

disk=/dev/nvme0n1
part=/dev/ng0n1@p1
store() {
	command=$1
	shift
	"$STEADY" store "$command" "$@"
}
beyond() { # the MiB behind the partition
	dd if=$disk bs=1M skip=33 count=1 iflag=direct status=none | cksum
}
dd if=/dev/urandom of=$disk bs=1M seek=33 count=1 oflag=direct status=none
addpart $disk 1 2048 65536 || fail "addpart"
behind=$(beyond)
# What a partition, a file system or a loop device uses.
store create /dev/ng0n1 2>said && fail "a store over partitions"
grep -q "holds partitions (nvme0n1p1)" said || fail "partitions: $(cat said)"
mkfs.ext4 -q -F ${disk}p1
store create $part 2>said && fail "a store over a file system"
grep -q "ext4 filesystem" said || fail "a file system: $(cat said)"
losetup /dev/loop0 ${disk}p1
store create $part --force 2>said && fail "a store below a loop device"
grep -q "in use (below loop0)" said || fail "a loop device: $(cat said)"
losetup -d /dev/loop0
blockdev --setro ${disk}p1
store create $part --force 2>said && fail "read-only"
grep -q "read-only" said || fail "read-only: $(cat said)"
blockdev --setrw ${disk}p1

store create $part --force --align 64K || fail "create"
head -c 3000000 /dev/urandom >contents
head -c 5000 /dev/urandom >few
store put $part 1 contents 2 few || fail "put"
for way in $part ${disk}p1; do
	rm -f copy
	store get "$way" 1 copy >/dev/null || fail "get from $way"
	cmp contents copy || fail "not what was put: $way"
	store list "$way" || fail "list of $way"
	store check "$way" >said || fail "check of $way: $(cat said)"
done
store delete $part 1 || fail "delete"
dd if=/dev/zero of=${disk}p1 bs=4096 count=1 conv=fsync 2>/dev/null
store check $part >said && fail "a lost superblock is good"
store repair $part || fail "repair"
store check ${disk}p1 >/dev/null || fail "after the repair"
[ "$behind" = "$(beyond)" ] || fail "outside the partition"

# PROGRAM: puts until four have succeeded, each time in the next way, and leaves their numbers.
mknod /run/other c "$(stat -c %Hr /dev/ng0n1)" "$(stat -c %Lr /dev/ng0n1)"
putting() {
	way=$1 good=0 tries=0
	while [ $good -lt 4 ] && [ $tries -lt 40 ]; do
		id=$((1000 * $1 + tries)) tries=$((tries + 1)) way=$(((way + 1) % 3))
		echo "$id of program $1" >input-$id
		head -c $((id % 7 * 30000)) contents >>input-$id
		case $way in
		0) device=$part ;;
		1) device=${disk}p1 ;;
		2) device=/run/other@p1 ;;
		esac
		if store put "$device" $id input-$id >/dev/null 2>>refusals; then
			echo $id >>"put-$programs"
			good=$((good + 1))
		fi
	done
	[ $good -eq 4 ] || fail "program $1 of $programs: $good puts: $(cat refusals)"
}
for programs in 2 8; do
	children=
	for program in $(seq $programs); do
		putting $((programs * 10 + program)) &
		children="$children $!"
	done
	for child in $children; do
		wait "$child" || fail "a program of $programs"
	done
	[ "$(wc -l <put-$programs)" -eq $((4 * programs)) ] || fail "$programs: $(cat put-$programs)"
	while read -r id; do
		rm -f copy
		store get $part "$id" copy >/dev/null || fail "$programs programs: put $id is lost"
		cmp "input-$id" copy || fail "$programs programs: put $id is wrong"
	done <put-$programs
	store check $part >/dev/null || fail "$programs programs: check"
done
[ ! -e refusals ] || grep -v "another program has this store open" refusals && fail "another reason"
echo "all done"
