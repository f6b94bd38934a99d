# SPDX-License-Identifier: MIT OR Apache-2.0
"""The lab's root: the pinned Debian in which everything is built, and on which guests run."""
