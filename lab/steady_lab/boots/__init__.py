# SPDX-License-Identifier: MIT OR Apache-2.0
"""One boot of a lab kernel: sandbox, the guest's init, kernel log, and applications' images."""
