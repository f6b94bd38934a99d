# SPDX-License-Identifier: MIT OR Apache-2.0
"""Targets run a command on a kernel with modules and a device: User Mode Linux is one."""
