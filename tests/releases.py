# SPDX-License-Identifier: MIT OR Apache-2.0
"""The releases that tests run on: 6.1 and 6.12, or those that STEADY_RELEASES names."""

import os

RELEASES = tuple(os.environ.get("STEADY_RELEASES", "6.1 6.12").split())
