#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a sector that cannot be read costs the block around it: recover and export say so and take the others, and a recording that starts keeps the segment unchanged
# DEVICE: test-cut
# FLAVOUR: base
. "$STEADY_FAILURES/recorder.sh"

# messages FILE: of the table of recover.
messages() {
	awk '$4 ~ /^[0-9]+$/ { sum += $4 } END { print sum + 0 }' "$1"
}

# exported: messages of an export that reports the missing ones.
exported() {
	"$STEADY" export "$RECORDING" -o /run/mnt/export.mcap --json >export.json
	expect "status of export" $? 3
	grep -q '"unreadable_bytes": 4096' export.json || fail "export says: $(cat export.json)"
	sed -n 's/^  "messages": \([0-9]*\),/\1/p' export.json
}

# A card in a file, so that it can be loaded again with bad sectors.
card="capacity_mib=64 cache_kib=1024 path=$PWD/card.img"
# shellcheck disable=SC2086
emmc_reload $card
make_filesystem
record --total 3000KiB &
sleep 0.9
kill -9 "$(pgrep -x steady)"
wait $!
"$STEADY" recover --dry-run "$RECORDING" >before
all=$(messages before)
open=$(awk '$2 == "unfinished" { print $1 }' before)
[ -f "$open" ] || fail "no segment is unfinished: $(cat before)"
# In the middle of its records.
place=163840
first=$(filefrag -b512 -v "$open" | awk -v place=$place '$1 == "0:" { print $4 + place / 512 }')
[ "$first" -gt 0 ] || fail "where is the segment? $(filefrag -v "$open")"
umount /run/mnt
# shellcheck disable=SC2086
emmc_reload $card "fault=read:error:sectors:$first-$first"
mount_card

"$STEADY" recover "$RECORDING" >after 2>recover.err
expect "status of recover" $? 3
grep -q "4096 bytes cannot be read, the first at byte $place: it was not changed; 1 blocks" \
	recover.err || fail "recover says: $(cat recover.err)"
expect_at_least "found" "$(messages after)" $((all - 40))
expect_at_most "found" "$(messages after)" $((all - 1))
expect "exported" "$(exported)" "$(messages after)"

record --total 10KiB
expect "status of the next recording" $? 3
grep -q "4096 bytes cannot be read.*; it is kept as $open.damaged-1" record.err ||
	fail "says: $(cat record.err)"
expect "exported with the new ones" "$(exported)" $(($(messages after) + 10))
