# SPDX-License-Identifier: MIT OR Apache-2.0
"""Power cuts from one boot's write log: the card's contents after losing power at any moment."""
