# SPDX-License-Identifier: MIT OR Apache-2.0
"""Figures: what they declare, the boots they need, their results and claims as numbers."""
