#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: chario takes only a card that was named and is not in use, and gives it back
# DEVICE: test-plain
# MODULES: chario
# COMPAT: claim_disk.h
. "$STEADY_TESTS/lib.sh"

mmcblk=/sys/bus/mmc/drivers/mmcblk
refused() {
	what=$1 file=$2 text=$3
	echo "$text" | LC_ALL=C tee "$file" >/dev/null 2>/run/refused && fail "$what: was accepted"
}

# Not named: it stays without a driver until mmcblk has it again.
echo mmc0:0001 >$mmcblk/unbind || fail "unbind"
refused "a card that was not named" $CHARIO/bind mmc0:0001
[ -e "$CHARDISK_NODE" ] && fail "took a card that was not named"
echo mmc0:0001 >$mmcblk/bind || fail "bind to mmcblk"
emmc_wait

# Named, unbound and bound by hand; the name is used up.
echo mmc0:0001 >$CHARIO/cards || fail "name"
expect "cards" "$(cat $CHARIO/cards)" mmc0:0001
refused "a card that mmcblk has" $CHARIO/bind mmc0:0001
echo mmc0:0001 >$mmcblk/unbind || fail "unbind"
echo mmc0:0001 >$CHARIO/bind || fail "bind to chario"
expect "cards" "$(cat $CHARIO/cards)" ""
expect "node" "$(stat -c '%F %a %u' $CHARDISK_NODE)" "character special file 600 0"
expect "mode" "$(cat $CHARIO_KNOBS/mode)" own
expect "card" "$(cat $CHARIO_KNOBS/card)" mmc0:0001
expect "size" "$(cat $CHARIO_KNOBS/size_bytes)" 268435456
[ -e /dev/mmcblk0 ] && fail "the block device stays"
chario_give

# By its CID, in one step.
cid=$(cat /sys/bus/mmc/devices/mmc0:0001/cid)
echo "$cid" >$CHARIO/cards || fail "name by CID"
echo mmc0:0001 >$mmcblk/unbind || fail "unbind"
echo mmc0:0001 >$CHARIO/bind || fail "bind by CID"
chario_give

# A mounted file system, on the disk or on a partition, keeps the card.
mkfs.ext4 -q -F /dev/mmcblk0 || fail "mkfs"
mkdir /run/mounted
mount -o noatime /dev/mmcblk0 /run/mounted || fail "mount"
refused "a mounted card" $CHARIO/take mmc0:0001
grep -q "busy" /run/refused || fail "mounted: $(cat /run/refused)"
echo still >/run/mounted/file || fail "write while refused"
umount /run/mounted
expect "cards after a refusal" "$(cat $CHARIO/cards)" ""
emmc_partition 2048 65536
mkfs.ext4 -q -F /dev/mmcblk0p1 || fail "mkfs p1"
mount /dev/mmcblk0p1 /run/mounted || fail "mount p1"
refused "a card with a mounted partition" $CHARIO/take mmc0:0001
umount /run/mounted

# So does a loop device on it, and a program that has it open.
losetup /dev/loop0 /dev/mmcblk0p1 || fail "losetup"
mount /dev/loop0 /run/mounted || fail "mount a loop device"
refused "a card below a loop device" $CHARIO/take mmc0:0001
refused "a partition below a loop device as a lane" $CHARIO/lane mmcblk0p1
grep -q "busy" /run/refused || fail "loop: $(cat /run/refused)"
echo still >/run/mounted/file || fail "write while refused"
umount /run/mounted
losetup -d /dev/loop0
exec 5</dev/mmcblk0p1
refused "a card that is open" $CHARIO/take mmc0:0001
exec 5<&-

refused "no such card" $CHARIO/take mmc7:0001
refused "no such card to give" $CHARIO/give mmc7:0001
refused "a card that is not here to give" $CHARIO/give mmc0:0001

# Another card in the same slot is not taken.
chario_take
emmc_unbind
[ -e "$CHARDISK_NODE" ] && fail "node after removal"
emmc_bind
[ -e "$CHARDISK_NODE" ] && fail "took the next card"

# In use the module stays; a file left open does not keep the card.
chario_take
exec 5<"$CHARDISK_NODE"
rmmod chario 2>/dev/null && fail "unloaded with an open file"
echo mmc0:0001 >$CHARIO/give || fail "give with an open file"
dd bs=512 count=1 <&5 2>&1 | grep -q "No such device" || fail "read from an open file after give"
exec 5<&-
emmc_wait
