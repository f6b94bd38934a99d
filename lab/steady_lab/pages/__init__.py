# SPDX-License-Identifier: MIT OR Apache-2.0
"""Pages made of results: the HTML report, pictures, and the computed parts of Markdown pages."""
