#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The full sweep, and a search for each objective.
set -eu
# shellcheck source=lib.sh
. "$STEADY_TESTS/lib.sh"

tune all --tail-max 50% --all
tune o1 --tail-max 50%
tune o2 --throughput-min 50%
