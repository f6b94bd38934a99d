# SPDX-License-Identifier: MIT OR Apache-2.0
"""Emulated devices: their specs, and the fit of their timing to published values."""
