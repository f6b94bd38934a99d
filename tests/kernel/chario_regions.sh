#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: with declared regions nothing outside them is read, written or discarded
# DEVICE: test-plain
# MODULES: chario
. "$STEADY_TESTS/lib.sh"
set -e

emmc_reload capacity_mib=16
pattern regions 16777216 >/run/before
dd if=/run/before of=/dev/mmcblk0 bs=1M conv=fsync 2>/dev/null

# Nonsense is refused as a whole: the card stays with mmcblk, nothing is named.
for regions in @ @1M @1M+ @+1M @1M+1M@ @1M+1Mrw @1M+1M@1535K+1M @1M+0 @100+512 @512+100 @16M+512 \
	@15M+1025K @0+0x1000200 @18446744073709551104+512 @18446744073709551104+1024 @0+16385K @-1+512 \
	@1Mro+1M "@1M+1M x" "$(seq 1 17 | awk '{ printf "@%d+512", $1 * 1024 }')"; do
	echo "mmc0:0001$regions" | tee $CHARIO/take >/dev/null 2>&1 && fail "'$regions' was accepted"
	[ -e $CHARDISK_NODE ] && fail "'$regions' took the card"
	emmc_wait
done

chario_take_regions @8M+1Mro@1M+65536@1114112+512
expect "regions" "$(tr '\n' ' ' <$CHARIO_KNOBS/regions)" "1048576+65536 1114112+512 8388608+1048576ro "
expect "first" "$(chardisk region index=0)" "1048576+65536 0"
expect "last" "$(chardisk region index=2)" "8388608+1048576 1"
expect "no such region" "$(chardisk region index=3)" ENOENT
expect "capabilities" "$(chardisk info | grep capabilities)" "capabilities 0x13"

# allowed EXPECTED OFFSET BYTES
allowed() {
	for via in pread buffer; do
		result=$(chardisk write via=$via offset="$2" bytes="$3" fill=1)
		expect "$via write $2+$3" "${result%% *}" "${1%/*}"
		result=$(chardisk read via=$via offset="$2" bytes="$3")
		expect "$via read $2+$3" "${result%% *}" "${1#*/}"
	done
}
first=1048576
allowed EACCES/EACCES 0 512
allowed EACCES/EACCES $((first - 512)) 512
allowed EACCES/EACCES $((first - 512)) 1024
allowed EACCES/EACCES $((first - 512)) 67072
allowed 65536/65536 $first 65536
allowed 1024/1024 $first 1024
allowed 1024/1024 $((first + 65536 - 1024)) 1024
for via in preadv transfer; do
	expect "$via outside" "$(chardisk write via=$via offset=$((first - 512)) bytes=1024)" EACCES
done
# Regions that touch are two: a call is inside one.
allowed EACCES/EACCES $((first + 65536 - 512)) 1024
allowed EACCES/EACCES $((first + 65536 + 512)) 1024
allowed EROFS/512 8388608 512
allowed EROFS/1048576 8388608 1048576
allowed EACCES/EACCES 8388608 1049088
allowed EACCES/EACCES $((9437184 - 512)) 1024
allowed EACCES/EACCES 9437184 1024
allowed EACCES/EACCES $((16777216 - 1024)) 1024
# What a call of any length could reach, wrapping around or not.
for bytes in 9223372036854774784 18446744073709551104; do
	expect "transfer of $bytes" "$(chardisk read via=transfer bytes=512 offset=$bytes | cut -d ' ' -f 1)" 0
done
expect "discard outside" "$(chardisk discard offset=0 bytes=4096)" EACCES
expect "discard of all" "$(chardisk discard offset=0 bytes=16777216)" EACCES
expect "discard across the edge" "$(chardisk discard offset=$first bytes=66048)" EACCES
expect "discard for reading only" "$(chardisk discard offset=8388608 bytes=4096)" EROFS
expect "discard" "$(chardisk discard offset=$((first + 512)) bytes=512)" 0
chario_give

# Outside the regions all is as it was.
dd if=/dev/mmcblk0 of=/run/after bs=1M 2>/dev/null
cmp -n $first /run/before /run/after
cmp -i $((first + 65536 + 512)) /run/before /run/after
cmp -s /run/before /run/after && fail "nothing was written at all"

# Regions given at load time; a card without regions next to one with.
rmmod chario
insmod "$STEADY_MODULE_CHARIO" cards=mmc1:1234,mmc0:0001@1M+1M
expect "cards" "$(tr '\n' ' ' <$CHARIO/cards)" "mmc1:1234 mmc0:0001@1048576+1048576 "
echo mmc0:0001 >/sys/bus/mmc/drivers/mmcblk/unbind
echo mmc0:0001 >$CHARIO/bind
expect "regions" "$(cat $CHARIO_KNOBS/regions)" 1048576+1048576
chario_give
rmmod chario
insmod "$STEADY_MODULE_CHARIO" cards=mmc0:0001@1M+x 2>/dev/null && fail "a bad parameter was accepted"
insmod "$STEADY_MODULE_CHARIO"
