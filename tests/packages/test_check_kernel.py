# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which structures of private headers k2-dkms compares before it builds."""

from __future__ import annotations

import importlib.util
import struct
from pathlib import Path

import pytest
from steady_lab.kernels.source import find_source
from steady_lab.paths import PROJECT

_SPEC = importlib.util.spec_from_file_location(
    "check_kernel", PROJECT / "packaging/k2-dkms/check_kernel.py"
)
assert _SPEC and _SPEC.loader
check_kernel = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(check_kernel)


def test_a_structure_counts_wherever_its_brace_is() -> None:
    """A declaration without members, and a variable, do not count."""
    headers = "struct a {\n};\nstruct b\n{\n};\nstruct c;\nextern struct d e;\n"
    assert check_kernel.defined_structures(headers) == {"a", "b"}


def test_structures_that_differ_between_kernels_are_compared() -> None:
    """Structures of the pinned 6.12 that k2 and the elevator core share."""
    block = find_source(release="6.12").tree / "block"
    found = check_kernel.defined_structures((block / "elevator.h").read_text())
    assert {"elevator_queue", "elevator_type", "elevator_mq_ops"} <= found


def test_a_pointer_in_type_information_may_be_to_data_per_cpu() -> None:
    """Type 2 is a pointer to type 1, a structure."""
    strings = b"\0stat\0"
    types = struct.pack("<3I", 1, check_kernel.STRUCT << 24, 0)
    types += struct.pack("<3I", 0, check_kernel.PTR << 24, 1)
    head = check_kernel.MAGIC + struct.pack("<4I", 0, len(types), len(types), len(strings))
    btf = check_kernel.Btf(head + types + strings)
    assert btf.declare_per_cpu(2) == "struct stat __percpu *"
    assert btf.declare_per_cpu(1) is None


def test_a_kernel_without_its_image_is_told_which_package_to_install(tmp_path: Path) -> None:
    """Neither headers nor /boot of this release are there."""
    with pytest.raises(check_kernel.RefusedError) as refused:
        check_kernel.type_information("k2", "6.1.0-none-amd64", tmp_path)
    said = str(refused.value)
    assert said.startswith("/boot/vmlinuz-6.1.0-none-amd64 is missing")
    assert "install linux-image-6.1.0-none-amd64" in said
