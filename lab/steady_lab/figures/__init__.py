# SPDX-License-Identifier: MIT OR Apache-2.0
"""Figures: their declarations, their boots, and their results and claims as numbers."""
