# SPDX-License-Identifier: MIT OR Apache-2.0
"""The subcommands of `steady-lab`: their options and their output."""
