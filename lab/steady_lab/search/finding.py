# SPDX-License-Identifier: MIT OR Apache-2.0
"""What did not hold of a case."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """`kind` is log, guest, data, books, cut, bound or ledger."""

    kind: str
    text: str
