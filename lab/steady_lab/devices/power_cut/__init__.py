# SPDX-License-Identifier: MIT OR Apache-2.0
"""Power cuts from one boot's write log: what the card holds after losing power at any moment."""
