# SPDX-License-Identifier: MIT OR Apache-2.0
"""Random workloads, knobs, faults and power cuts against what must always hold."""
