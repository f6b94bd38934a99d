# SPDX-License-Identifier: MIT OR Apache-2.0
"""Boots on other machines: what they need is shipped once, by hash; Dask gives out the boots."""
