#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Run the small figure and say what came out, in lines "proof: KEY VALUE". Called by prove.py, here
# and on other systems, in the clone. $1: Python with the lab's libraries, $2: folder for the results.
set -e

fact() { echo "proof: $1 $2"; }
hash() { fact "$1" "$(sha256sum "$2" | cut -d' ' -f1)"; }

run_figure() {
	"$1" -m steady_lab.cli run tests/figures/tiny.toml --build "$2" </dev/null && return
	tail -n 20 "$2"/work/tiny/*/.steady/kernel.log || true
	exit 1
}

# shellcheck source=/dev/null
fact system "$(. /etc/os-release && echo "$PRETTY_NAME")"
fact processor "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
fact avx2 "$(grep -qw avx2 /proc/cpuinfo && echo yes || echo no)"
fact kernel "$(uname -r)"
fact user "$(id -u)"
run_figure "$1" "$2"
for name in tiny.csv tiny.json; do
	hash "$name" "$2/results/$name"
done
