# SPDX-License-Identifier: MIT OR Apache-2.0
"""Boots on other machines: their inputs are sent once, by hash; Dask distributes the boots."""
