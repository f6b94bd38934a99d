# SPDX-License-Identifier: MIT OR Apache-2.0
"""Emulated devices: their specs, the fit of their timing, and power cuts."""
