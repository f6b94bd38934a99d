# SPDX-License-Identifier: MIT OR Apache-2.0
"""Lab kernels: their source, their build, and the modules built against them."""
