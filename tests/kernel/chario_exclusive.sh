#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: O_EXCL keeps all others out, through any node of the device, until it is closed
# DEVICE: test-plain
# MODULES: chario
. "$STEADY_TESTS/lib.sh"

# held_by KEY=VALUE...: a process that has the device open so, until let_go.
held_by() {
	rm -f /run/hold
	mkfifo /run/hold
	chardisk hold "$@" </run/hold >/run/held &
	holder=$!
	exec 8>/run/hold
	for _ in $(seq 500); do
		[ -s /run/held ] && break
		sleep 0.01
	done
	expect "hold $*" "$(cat /run/held)" held
}

let_go() {
	exec 8>&-
	wait "$holder"
}

# opened_by NODE KEY=VALUE...: what a read says.
opened_by() {
	node=$1
	shift
	"$STEADY_TESTS_BIN/chardisk" "$node" read "$@" | cut -d ' ' -f 1
}

chario_take
# shellcheck disable=SC2046 # Two words.
mknod /run/other c $(stat -c '%Hr %Lr' $CHARDISK_NODE) || fail "mknod"
for node in $CHARDISK_NODE /run/other; do
	for open in r rw; do
		held_by exclusive=1 open=$open
		for exclusive in 0 1; do
			expect "next to an exclusive one" "$(opened_by "$node" exclusive=$exclusive open=r)" EBUSY
		done
		expect "next to an exclusive one" "$(opened_by "$node" open=rw)" EBUSY
		let_go
		expect "after it" "$(opened_by "$node" exclusive=1)" 4096

		held_by open=$open
		expect "exclusive next to another" "$(opened_by "$node" exclusive=1)" EBUSY
		expect "both not exclusive" "$(opened_by "$node")" 4096
		let_go
	done
done

# One that is killed, and one whose card is gone.
held_by exclusive=1
kill -9 "$holder"
let_go
expect "after a kill" "$(opened_by /run/other exclusive=1)" 4096
held_by exclusive=1
chario_give
let_go
chario_take
expect "taken again" "$(opened_by $CHARDISK_NODE exclusive=1)" 4096
chario_give
