# SPDX-License-Identifier: MIT OR Apache-2.0
"""The folders of lab/steady_lab/ are layers: a module imports its own layer and lower ones only.

And what is of one kind of device is in that kind's file.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from steady_lab.devices.kinds import KINDS, MODULES
from steady_lab.paths import PROJECT

LAB = PROJECT / "lab" / "steady_lab"
# From low to high. What lies next to the folders is shared by all of them, but for the entry point.
SHARED, *FOLDERS = (
    *("shared", "root", "kernels", "devices", "targets", "figures", "sweeps", "search", "pages"),
    "commands",
)
ENTRY = "cli"


def layer_of(module: str) -> str:
    """Return the layer of a module of the lab, named as an import names it."""
    first = module.split(".")[1] if "." in module else ""
    return first if first in (*FOLDERS, ENTRY) else SHARED


def imported_modules(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "a relative import hides from this test"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def upward_imports(module: str, source: str) -> list[str]:
    """Return the imports of a module with this source from higher layers."""
    order = [SHARED, *FOLDERS, ENTRY]
    own = order.index(layer_of(module))
    imported = (name for name in imported_modules(source) if name.startswith("steady_lab"))
    return [name for name in imported if order.index(layer_of(name)) > own]


def lab_files() -> list[Path]:
    return sorted(LAB.rglob("*.py"))


def test_no_layer_imports_a_higher_one() -> None:
    for file in lab_files():
        module = ".".join(("steady_lab", *file.relative_to(LAB).with_suffix("").parts))
        assert upward_imports(module, file.read_text(encoding="utf-8")) == [], file


def test_every_folder_is_a_layer() -> None:
    assert {file.relative_to(LAB).parts[0] for file in lab_files() if file.parent != LAB} == set(
        FOLDERS
    )


def test_only_its_own_file_names_a_kinds_node_and_module() -> None:
    assert len({module.name for module in MODULES}) == len(KINDS) + 1
    for kind in KINDS.values():
        knowing = {
            file.stem
            for file in lab_files()
            for text in [file.read_text(encoding="utf-8")]
            if Path(kind.node).name in text or kind.module.name in text
        }
        assert knowing == {kind.name}


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("steady_lab.kernels.build", "from steady_lab.targets.uml import uml"),
        ("steady_lab.pages.report", "import steady_lab.commands.run"),
        ("steady_lab.paths", "from steady_lab import kernels"),
        ("steady_lab.commands.demo", "def late():\n    from steady_lab.cli import main"),
    ],
)
def test_an_import_of_a_higher_layer_is_found(module: str, source: str) -> None:
    assert len(upward_imports(module, source)) == 1
