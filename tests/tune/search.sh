#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# A search that finds a pick, one that cannot, and one that requests an unsupported knob.
set -eu
# shellcheck source=lib.sh
. "$STEADY_TESTS/lib.sh"

# 3 is the least that keeps the limit.
tune o2 2,3,8,16 --throughput-min 50%
knobs >o2.knobs

status_of unattainable 2,8 --tail-max 1us
status_of unknown 2,8 --tail-max 1ms --with iosched/depth=1
knobs >unknown.knobs
